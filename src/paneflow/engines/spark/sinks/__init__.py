"""Streams into a sink: batches, what is remembered between them, and which run may write."""
