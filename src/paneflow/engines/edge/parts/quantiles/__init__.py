"""Exact quantiles of large slices: summaries go up, and the values that decide are asked for."""
