"""Benchmarks against other libraries and against paneflow's own targets. Not part of the wheel."""
