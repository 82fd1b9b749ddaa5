"""Ports for nodes and brokers of tests, of which several runs may share a machine."""

from __future__ import annotations

import random
import socket

GIVEN: list[socket.socket] = []
"""Sockets for UDP that hold the ports given, until this process ends.

A port is given long before somebody listens there, and nobody does while a node is down. Nodes use
TCP, so the port of the same number for UDP tells other test runs that it is taken.
"""


def free_port() -> int:
    """A port that nobody uses, outside of the range from which systems choose ports themselves."""
    while True:
        port = random.randint(20_000, 32_000)
        held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            held.bind(("127.0.0.1", port))
        except OSError:
            held.close()
            continue
        if not is_used(port):
            GIVEN.append(held)
            return port
        held.close()


def is_used(port: int) -> bool:
    """Whether somebody listens at a port."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
