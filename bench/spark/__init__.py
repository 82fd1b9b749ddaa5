"""paneflow on Spark beside Spark's own windows: finite frames and streams."""
