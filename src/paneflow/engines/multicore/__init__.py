"""A live stream answered by threads in this process, with the same rows whatever their number."""
