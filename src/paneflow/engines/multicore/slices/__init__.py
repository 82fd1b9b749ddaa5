"""Workers that cut whole batches into slices of their own, which are merged in batch order."""
