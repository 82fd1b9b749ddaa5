"""The queries of a running tree: added and removed at the root, known to all nodes."""
