"""How a query is stated: what its parts can be given as, and what they are kept as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.defined import Definition
from paneflow.errors import QueryError
from paneflow.names import is_name
from paneflow.windows import Window


def tick(given: object, what: str) -> int | None:
    """Check a time given as a whole number; one beyond all possible times becomes the farthest."""
    if given is None:
        return None
    # To NumPy a timedelta64 is an integer, too.
    if isinstance(given, bool | np.timedelta64) or not isinstance(given, int | np.integer):
        raise QueryError(
            f"{what} was given as {given!r}: pass a whole number, in microseconds or in the unit "
            f"of the time column"
        )
    return max(-(2**62), min(int(given), 2**62))


def labelled(windows: Any) -> dict[str, Window]:
    """Windows by label."""
    if isinstance(windows, Window):
        windows = [windows]
    if not isinstance(windows, Mapping):
        if isinstance(windows, str) or not isinstance(windows, Iterable):
            raise QueryError(
                f"windows must be a window, a list or a dict of windows, not {windows!r}: for "
                f'example paneflow.windows.sliding("1 hour", "1 second")'
            )
        given = _listed(windows, "windows")
        found = {str(w): w for w in given}
        if len(found) < len(given):
            raise QueryError(
                f"two windows have the same label among {', '.join(map(str, given))}: leave one "
                f"out, or pass a dict of labels and windows"
            )
    else:
        found = dict(windows)
    if not found:
        raise QueryError("no window given: pass at least one")
    for label, window in found.items():
        if not isinstance(window, Window):
            raise QueryError(
                f"window {label!r} is {window!r}, not a window: use paneflow.windows, for "
                f'example sliding("1 hour", "1 second")'
            )
        if not is_name(label):
            raise QueryError(f"a window's label must be text, not {label!r}")
    return found


def _listed(given: Iterable[Any], what: str) -> list[Any]:
    """All items of an iterable; some, such as an array without dimensions, cannot be iterated."""
    try:
        return list(given)
    except TypeError:
        raise QueryError(f"{what} was given as {given!r}: pass a list") from None


def named(aggregates: Any) -> dict[str, Aggregate]:
    """Aggregates by name."""
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise QueryError(
            f"aggregates must be a dict of names and aggregates, not {aggregates!r}: for example "
            f'{{"peak": paneflow.aggregates.max("load")}}'
        )
    for name, aggregate in aggregates.items():
        if not is_name(name):
            raise QueryError(f"an aggregate's name must be text, not {name!r}")
        if isinstance(aggregate, Definition):
            raise QueryError(f"aggregate {name!r} has no columns: call it, as in geometric('v')")
        if not isinstance(aggregate, Aggregate):
            raise QueryError(
                f"aggregate {name!r} is {aggregate!r}, not an aggregate: use "
                f'paneflow.aggregates, for example max("load")'
            )
    return dict(aggregates)


def names(key: str | Iterable[str] | None) -> tuple[str, ...]:
    """The columns of a key."""
    if key is None:
        return ()
    if not isinstance(key, str | Iterable):
        raise QueryError(f"key must be the name of a column, or a list of names, not {key!r}")
    given = (key,) if isinstance(key, str) else tuple(_listed(key, "key"))
    for name in given:
        if not is_name(name):
            raise QueryError(f"a key column is given by its name, not by {name!r}")
    if len(set(given)) < len(given):
        raise QueryError(f"key has a column twice ({', '.join(given)}): leave one out")
    return given
