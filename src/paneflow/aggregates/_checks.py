"""Checks of parameters that several aggregates share, so that all give the same errors."""

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


def checked_share(q: float, what: str) -> float:
    """A share between 0 and 1.

    >>> checked_share(1, "quantile")
    1.0
    """
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise QueryError(f"{what}: q must be a number from 0 to 1, not {q!r}: the median is 0.5")
    return float(q)
