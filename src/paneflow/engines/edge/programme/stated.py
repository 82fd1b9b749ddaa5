"""Queries that were added to a running tree, as messages, logs and snapshots state them.

A query that is added gets a number, under which its tables travel beside those of the first query.
Numbers are not used again: what is still on its way for a query that was removed is recognised.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from paneflow.engines.edge.question import Question
from paneflow.errors import QueryError
from paneflow.windows import Session, Sliding
from paneflow.wording import arguments_of

FIRST = "main"
"""The name of the query that the tree was started with."""
PROGRAMME = "programme"
"""Under this name an ask says how the queries of the tree change."""
OF_QUERY = "query"
"""Under this name an ask says which added query it is about."""
BEGINS = "begins"
"""The table in which a node says from which time on a query is answered."""
BEGINS_SCHEMA = pa.schema([(BEGINS, pa.int64())])
_MARK = "+"
T = TypeVar("T")


class Stated(NamedTuple):
    """A query in words."""

    key: str
    """Its number."""
    name: str
    query: Mapping[str, Any]
    ways: Mapping[str, str]
    columns: str
    """The columns that it reads, so that all nodes read it alike."""

    def told(self) -> dict[str, Any]:
        """What nodes are told to add."""
        return {"add": self._asdict()}

    def question(self, first: Question) -> Question:
        """The question; queries that cannot be added to a tree are refused.

        Events may come as late as the tree's first query says.
        """
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.columns)))
        arguments = arguments_of(self.query)
        query = type(first.query)(**arguments)
        Question(query, columns, self.ways)
        if query.time != first.query.time:
            raise QueryError(
                f"query {self.name!r} has the time column {query.time!r}, but the watermarks of "
                f"this tree follow {first.query.time!r}: use that one, or start another tree"
            )
        lateness = first.query.lateness
        if query.lateness.value > lateness.value:
            raise QueryError(
                f"query {self.name!r} waits {query.lateness} for late events, but this tree waits "
                f"{lateness}: choose at most that, or start another tree"
            )
        for label, window in query.windows.items():
            if not isinstance(window, Sliding | Session):
                raise QueryError(
                    f"window {label!r} ({window}) of query {self.name!r} depends on all events "
                    f"since the first, so it cannot begin in a tree that runs: use time windows "
                    f"and sessions, or start another tree"
                )
        arguments["lateness"] = lateness
        return Question(type(first.query)(**arguments), columns, self.ways)


class Known:
    """All queries that were ever added, so that whatever is said of them can be read.

    Args:
        first: The query that the tree was started with.
    """

    def __init__(self, first: Question) -> None:
        self.first = first
        self._stated: dict[str, Stated] = {}
        self._questions: dict[str, Question] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._stated

    @property
    def names(self) -> set[str]:
        """The names that queries have or had."""
        return {stated.name for stated in self._stated.values()}

    def stating(
        self, name: str, query: Mapping[str, Any], ways: Mapping[str, str], columns: pa.Schema
    ) -> Stated:
        """A query of events with these columns in words; one that cannot be added is refused."""
        asked = type(self.first.query)(**arguments_of(query))
        asked.check(columns)
        read = pa.schema([columns.field(column) for column in asked.columns])
        packed = base64.b64encode(read.serialize().to_pybytes()).decode()
        stated = Stated(str(len(self._stated) + 1), name, query, dict(ways), packed)
        stated.question(self.first)
        return stated

    def add(self, stated: Stated) -> Question:
        """Know one more."""
        self._stated[stated.key] = stated
        self._questions[stated.key] = stated.question(self.first)
        return self._questions[stated.key]

    def stated(self, key: str) -> Stated:
        """A query in words."""
        return self._stated[key]

    def question(self, key: str) -> Question:
        """A query, taken apart."""
        return self._questions[key]

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """What tables of reports look like."""
        of_all: dict[str, pa.Schema] = {}
        for key, question in self._questions.items():
            of_all |= named(key, {BEGINS: BEGINS_SCHEMA, **question.schemas})
        return of_all

    @property
    def cut_schemas(self) -> dict[str, pa.Schema]:
        """What tables look like that child nodes write down."""
        of_all: dict[str, pa.Schema] = {}
        for key, question in self._questions.items():
            of_all |= named(key, question.cut_schemas)
        return of_all

    def state(self) -> list[dict[str, Any]]:
        """All of this, as JSON can hold it."""
        return [stated._asdict() for stated in self._stated.values()]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Take up what `state` gave."""
        for told in state:
            self.add(Stated(**told))


def named(key: str, things: Mapping[str, T]) -> dict[str, T]:
    """Things of an added query, under names that nothing of other queries has.

    >>> named("2", {"slices": 5})
    {'+2/slices': 5}
    """
    return {f"{_MARK}{key}/{name}": thing for name, thing in things.items()}


def by_query(things: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """Things by the number of their query; "" is the first one.

    >>> by_query({"slices": 4, "+2/slices": 5})
    {'': {'slices': 4}, '2': {'slices': 5}}
    """
    found: dict[str, dict[str, T]] = {"": {}}
    for name, thing in things.items():
        key, own = "", name
        if name.startswith(_MARK):
            key, _, own = name.removeprefix(_MARK).partition("/")
        found.setdefault(key, {})[own] = thing
    return found


def check_name(name: str, taken: Collection[str], used: Collection[str]) -> None:
    """Refuse names that another query has or had, or that cannot be those of a folder."""
    if not name.replace("_", "").replace("-", "").isalnum() or not name.isascii():
        raise QueryError(
            f"{name!r} cannot be the name of a query, because its rows are kept in a folder of "
            f"that name: use letters, digits, '_' and '-'"
        )
    if name in (FIRST, *taken):
        raise QueryError(f"the tree answers a query {name!r} already: choose another name")
    if name in used:
        raise QueryError(
            f"the tree has answered another query {name!r} before, and its rows are kept under "
            f"that name: choose another name"
        )
