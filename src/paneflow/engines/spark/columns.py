"""Which column of a frame a name of the query means, as Spark would have it.

A column of exactly that name goes first. Unless `spark.sql.caseSensitive` is set, a name that
differs in case will do as well; and `house.id` may be a field of a struct. Names may contain
anything; the path of a field quotes such parts with backticks, as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from paneflow.errors import InputError, QueryError

PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


@dataclass(frozen=True)
class Place:
    """Where a frame has what a name means: a column, by position, and a path into it."""

    column: int
    path: tuple[str, ...] = ()


def find(frame: Any, names: Iterable[str]) -> dict[str, Place]:
    """The places of some names; an error for those that mean no column, or several."""
    found: dict[str, Place] = {}
    missing = []
    same = _sameness(frame)
    for name in names:
        places = _places(frame.schema, name, same)
        if len(places) > 1:
            raise InputError(
                f"the DataFrame has several columns that Spark takes {name!r} for; it has "
                f"{_shown(frame)}: rename or drop all but one, or, if they differ in case, "
                f'spark.conf.set("spark.sql.caseSensitive", "true")'
            )
        if places:
            found[name] = places[0]
        else:
            missing.append(name)
    if missing:
        raise InputError(
            f"the DataFrame has no column {', '.join(map(repr, missing))}; it has "
            f"{_shown(frame)}: rename a column, or correct the query"
        )
    return found


def check_apart(frame: Any, names: Iterable[str]) -> None:
    """Refuse a result in which Spark could not tell two columns apart."""
    same = _sameness(frame)
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(same(name), name)
        if other != name:
            raise QueryError(
                f"the result has columns {other!r} and {name!r}, and this Spark session ignores "
                f"case: give one of them another name, or "
                f'spark.conf.set("spark.sql.caseSensitive", "true")'
            )


def _sameness(frame: Any) -> Callable[[str], str]:
    """What is equal for names that are the same in the frame's session."""
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    return str if exact else str.lower


def _places(schema: Any, name: str, same: Callable[[str], str]) -> list[Place]:
    whole = [Place(at) for at in _matching(schema.names, name, same)]
    if whole:
        return whole
    parts = list(_parts(name))
    if not parts:
        return []
    column, *path = parts
    return [
        Place(at, tuple(path))
        for at in _matching(schema.names, column, same)
        if _leads_on(schema.fields[at].dataType, path, same)
    ]


def _matching(names: list[str], name: str, same: Callable[[str], str]) -> list[int]:
    return [at for at, other in enumerate(names) if same(other) == same(name)]


def _leads_on(type_: Any, path: list[str], same: Callable[[str], str]) -> bool:
    """Whether a type has one field at the end of a path of structs."""
    for part in path:
        fields = _matching(getattr(type_, "names", []), part, same)
        if len(fields) != 1:
            return False
        type_ = type_.fields[fields[0]].dataType
    return True


def _parts(name: str) -> Iterator[str]:
    """The parts of a path; none if it is not a path."""
    parts, at = [], 0
    while match := PART.match(name, at):
        quoted, bare = match.groups()
        parts.append(bare if quoted is None else quoted.replace("``", "`"))
        at = match.end()
        if at == len(name):
            yield from parts
            return
        if name[at] != ".":
            return
        at += 1


def _shown(frame: Any) -> str:
    return ", ".join(map(repr, frame.columns))
