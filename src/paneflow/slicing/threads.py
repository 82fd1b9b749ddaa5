"""How many threads work on a table: this affects speed, never rows."""

from __future__ import annotations

import os

from paneflow.errors import QueryError

VARIABLE = "PANEFLOW_THREADS"


def available() -> int:
    """As many as the environment variable PANEFLOW_THREADS says, else as this process has cores.

    >>> available() >= 1
    True
    """
    given = os.environ.get(VARIABLE)
    if given is not None:
        if given.isdecimal() and int(given) >= 1:
            return int(given)
        raise QueryError(
            f"the environment variable {VARIABLE} is {given!r}: give a whole number of at least 1, "
            f"or leave it out to use all cores"
        )
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
