"""From merged partials to results, for every engine: which operators, and what is made of them.

Aggregates of a query share operators, and of an operator that gives several of them each takes its
own components (`operator.share`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paneflow.aggregates._functions.roles import MOST
from paneflow.aggregates.aggregate import Aggregate, Constant, Kinds, Lowered
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.operator import Array, Operator, Partials, share


def column_set(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that must all be present, whatever the order in which they are named."""
    return tuple(sorted(set(columns)))


class Lowering:
    """The aggregates of a query whose partials have a fixed size.

    >>> from paneflow.aggregates import mean, sum
    >>> from paneflow.aggregates.values import Kind
    >>> both = Lowering({"mean": mean("v"), "sum": sum("v")}, {"v": Kind.FLOAT})
    >>> [operator.name for operator in both.operators]
    ['float_sum']
    """

    def __init__(self, aggregates: Mapping[str, Aggregate], kinds: Kinds) -> None:
        self.aggregates = {n: a for n, a in aggregates.items() if isinstance(a, Constant)}
        self._kinds = kinds
        self._wanted = {name: a.operators(kinds) for name, a in self.aggregates.items()}
        self._shared = share([op for operators in self._wanted.values() for op in operators])
        self.operators = list(dict.fromkeys(source for source, _ in self._shared.values()))
        """What has to be folded and merged."""
        self.counted = list(dict.fromkeys(map(self.columns, self.aggregates)))
        """The sets of columns of which it must be known how many events have all of them."""

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns that an event must have for an aggregate to count it."""
        return column_set(self.aggregates[name].columns)

    def first_operator(self, name: str) -> Operator:
        """The first operator that an aggregate asks for."""
        return self._wanted[name][0]

    def sources(self, name: str) -> list[Operator]:
        """Those of `operators` that an aggregate is made of."""
        return list(dict.fromkeys(self._shared[op][0] for op in self._wanted[name]))

    def lower(self, name: str, n: Array, merged: Mapping[Operator, Partials]) -> Lowered:
        """The results of many windows, which have n events with a value each."""
        aggregate = self.aggregates[name]
        parts: list[Partials] = []
        for operator in self._wanted[name]:
            source, which = self._shared[operator]
            parts.append(tuple(merged[source][k] for k in which))
        try:
            return aggregate.lower(n, parts, self._kinds)
        except Exception:
            if isinstance(aggregate, Defined):
                _lower_plainly(aggregate, n, parts)
            raise


def _lower_plainly(aggregate: Defined, n: Array, merged: Sequence[Partials]) -> None:
    """Lower again as plain Python.

    Compiled code knows only that it failed. A user's function that is run on the same values fails
    again, with a traceback into the user's own lines.
    """
    some = n.nonzero()[0][:MOST]
    for cells in zip(*(_plain(column[some]) for column in merged[0]), strict=True):
        aggregate.lower_one(cells[0] if len(cells) == 1 else cells)


def _plain(column: Array) -> list[Any]:
    """Cells as Python has them; rows of numbers stay as they are."""
    return column.tolist() if column.ndim == 1 else list(column)
