"""What can be the name of a column, a window or an aggregate."""

from __future__ import annotations

from typing import TypeGuard


def is_name(given: object) -> TypeGuard[str]:
    """Whether something is text that a table can use as the name of a column.

    >>> is_name("load"), is_name(""), is_name(7)
    (True, False, False)
    """
    if not isinstance(given, str) or not given:
        return False
    try:
        given.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which tables cannot store
        return False
    return True
