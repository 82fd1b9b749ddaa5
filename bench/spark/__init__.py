"""paneflow on Spark against Spark's own windows: batch and streaming DataFrames."""
