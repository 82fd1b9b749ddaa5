"""Addresses in a file: where a node listens, and where others reach it."""

from __future__ import annotations

from urllib.parse import urlsplit

from paneflow.engines.edge.config.section import Section
from paneflow.engines.edge.network.addresses import host_of, stays_here

ANY_HOST = ("*", "0.0.0.0", "::")


def listening(section: Section, key: str) -> str | None:
    """An address to listen at; the host may be `*`, and so may the port."""
    return _address(section, key, any_allowed=True)


def reached(section: Section, key: str) -> str | None:
    """An address to connect to."""
    return _address(section, key, any_allowed=False)


def is_open(address: str) -> bool:
    """Whether an address names no host, or no port, that others could connect to."""
    return address.startswith("tcp:") and (
        host_of(address) in ANY_HOST or address.rpartition(":")[2] in ("*", "0")
    )


def host_and_port(section: Section, key: str) -> str | None:
    """A host and a port without a protocol, such as `127.0.0.1:9100`."""
    given = section.text(key)
    if given is not None and "://" in given:
        raise section.error(f"{key} = {given!r} has a protocol: write HOST:PORT alone")
    if given is not None:
        check_port(section, key, f"tcp://{given}", any_allowed=False)
    return given


def check_port(section: Section, key: str, address: str, any_allowed: bool) -> None:
    """Refuse an address without a host or a port."""
    port = address.rpartition(":")[2]
    numbered = port.isascii() and port.isdigit() and 1 <= int(port) <= 65535
    if not (numbered or (any_allowed and port in ("*", "0"))) or not urlsplit(address).netloc:
        raise section.error(
            f"{key} = {address!r} has no port from 1 to 65535: write for example "
            f'"{address.split(":")[0]}://127.0.0.1:7001"'
        )


def _address(section: Section, key: str, any_allowed: bool) -> str | None:
    given = section.text(key)
    if given is None or given.startswith("ipc://"):
        return given
    section.guarded(key, lambda: stays_here(given))
    check_port(section, key, given, any_allowed)
    if not any_allowed and is_open(given):
        raise section.error(f"{key} = {given!r} names no host: write the one to connect to")
    return given
