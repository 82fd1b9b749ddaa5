"""Benchmarks: paneflow beside its peers, and beside its own promises. Not part of the wheel."""
