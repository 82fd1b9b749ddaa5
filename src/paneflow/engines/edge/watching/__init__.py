"""What there is to watch: what each node does, the whole tree as its root sees it, and logs."""
