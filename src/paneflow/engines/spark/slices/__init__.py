"""Slices on Spark: cut by Spark or in Python, packed for a shuffle, spread over tasks, stored."""
