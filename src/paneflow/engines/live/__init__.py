"""The open windows of a stream: what is kept, and the rows that a watermark closes."""
