"""What sensors and a child say to each other over ZeroMQ, and what both ends remember of it."""
