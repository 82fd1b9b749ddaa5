"""Checks of parameters that several aggregates share, so that they refuse in one voice."""

from __future__ import annotations

from paneflow.errors import QueryError


def whole_number(given: object, what: str, least: int, most: int) -> int:
    """A whole number between two others.

    >>> whole_number(3, "top_k: k", 1, 10)
    3
    """
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise QueryError(f"{what} must be a whole number from {least} to {most}, not {given!r}")
    return given
