"""Threads, the rings between them, and how they wake each other."""
