"""Inputs that a stream reads by itself: iterators, Arrow streams, files and sockets."""
