"""The engines: one answer to a query, computed in different places."""
