"""How users' functions run over columns of given kinds: their types, and whether compiled."""
