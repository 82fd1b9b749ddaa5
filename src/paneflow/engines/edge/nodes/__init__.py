"""The nodes of a tree as state machines: they know nothing of sockets, files or clocks."""
