"""Streams as frames: the plan that Spark runs, and the state of each shard of the keys."""
