"""Arrays and batches that grow with a stream, and can be restored after a failure."""
