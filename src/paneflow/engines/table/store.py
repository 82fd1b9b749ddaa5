"""What windows are merged from: events of a table, or slices that were cut before.

A store covers some neighbouring keys. Its rows stand in total order, and windows are ranges of
its rows; a store says how those ranges map to what it keeps for each aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.slicing.bounds.ranges import Found
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part
from paneflow.windows import Window

Positions = Callable[[Array], Array]
"""From positions among a store's rows to positions among what it keeps."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Values of a column by rank, how often each occurs, and the value of every rank."""

    ranks: Array
    counts: Array
    values: Array
    column: Column
    at: Positions


@dataclass(frozen=True, eq=False)
class Held:
    """Values of a column as it holds them, and how often each occurs (None: once)."""

    values: Array
    counts: Array | None
    column: Column
    at: Positions


class Store(Protocol):
    """Rows in total order, and what is kept of them."""

    part: Part

    def ranges(self, windows: Sequence[Window]) -> Found:
        """The windows of this store's keys, as ranges of its rows; slices are fixed by them."""
        ...

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        """How many events with a value in each of the columns are in each range."""
        ...

    def partials(self, operator: Operator) -> tuple[Partials, Positions]:
        """The slices' partials."""
        ...

    def runs(self, column: str) -> Runs:
        """The slices' multisets."""
        ...

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        """The events' values, in total order."""
        ...

    def held(self, operator: Operator, component: int) -> Column:
        """The column whose values a component holds, for the way back to its type."""
        ...
