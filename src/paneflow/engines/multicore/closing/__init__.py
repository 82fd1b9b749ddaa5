"""Which windows of a stream have closed, found from what comes, not from all that is held."""
