"""Arrays and batches that grow with a stream, with a way back after a failure."""
