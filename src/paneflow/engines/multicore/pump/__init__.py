"""Moves a stream on: whose turn it is to work, one step after another, rows in order."""
