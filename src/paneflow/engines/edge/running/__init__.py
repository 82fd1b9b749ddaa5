"""Runs the nodes of a tree: sockets, inputs, the log and the clock, around the state machines."""
