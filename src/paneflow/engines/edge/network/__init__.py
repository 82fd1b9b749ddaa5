"""Connections between nodes: keys, who may connect, and sockets."""
