"""Checks of parameters that several kinds of window share, with one wording of the errors."""

from __future__ import annotations

import operator

from paneflow.errors import QueryError
from paneflow.names import is_name


def settle(window: object, **fields: object) -> None:
    """Set the fields of a frozen window to their checked values."""
    for name, value in fields.items():
        object.__setattr__(window, name, value)


def whole_number(given: object, what: str) -> int:
    """Check a number of events: an integer of at least 1.

    >>> whole_number(3, "size")
    3
    """
    if not isinstance(given, bool):
        try:
            number = operator.index(given)  # type: ignore[arg-type]
        except TypeError:
            pass
        else:
            if 1 <= number < 2**62:
                return number
    raise QueryError(
        f"The {what} was given as {given!r}, but it is a number of events: "
        f"give an integer of at least 1 and below 2**62."
    )


def column_name(given: object, kind: str) -> str:
    """Check the name of the column that a window reads.

    >>> column_name("load", "delta")
    'load'
    """
    if is_name(given):
        return given
    raise QueryError(
        f"The column of a {kind} window was given as {given!r}: give the name of a column as text."
    )


def flag(given: object, what: str) -> bool:
    """Check a boolean option.

    >>> flag(True, "partial")
    True
    """
    if isinstance(given, bool):
        return given
    raise QueryError(f"`{what}` was given as {given!r}: give True or False.")
