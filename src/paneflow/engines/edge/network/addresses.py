"""Which addresses stay on this machine. All others are for nodes with keys only."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from paneflow.errors import QueryError


def stays_here(address: str) -> bool:
    """Whether nobody outside this machine can reach an address, or be reached by it.

    Example:
        >>> stays_here("tcp://127.0.0.1:7001"), stays_here("tcp://*:7001")
        (True, False)
    """
    if address.startswith(("ipc://", "inproc://")):
        return True
    host = host_of(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(address: str) -> str:
    """The host in an address.

    Example:
        >>> host_of("tcp://[::1]:7001"), host_of("tcp://*:*")
        ('::1', '*')
    """
    parts = urlsplit(address)
    host = parts.netloc.rpartition(":")[0].strip("[]")
    if parts.scheme != "tcp" or not host:
        raise QueryError(
            f"{address!r} is not an address: expected 'tcp://HOST:PORT', or 'ipc://FILE' for nodes "
            "on one machine"
        )
    return host
