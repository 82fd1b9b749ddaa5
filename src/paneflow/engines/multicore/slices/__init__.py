"""Workers that share whole batches, deal them out by key, and go on with a share of the keys."""
