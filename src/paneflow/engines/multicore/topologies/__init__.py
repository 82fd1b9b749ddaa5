"""Processing units in lines and rings, as in the thesis on coordinator-free aggregation."""
