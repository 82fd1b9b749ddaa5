"""Where a column of a result comes from, so that it can be returned in the type it had."""

from __future__ import annotations

from typing import NamedTuple


class Origin(NamedTuple):
    """The column of the caller's table that a result column is made from."""

    column: str
    held: bool
    """Whether the result holds values of that column, or lists of them; else it is computed."""
