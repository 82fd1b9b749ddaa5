"""Finite frames: `batch.py` answers, in one of the ways that its neighbours offer."""
