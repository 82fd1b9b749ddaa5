"""What Spark reads that is no table of events: the slices that trees of nodes have written."""
