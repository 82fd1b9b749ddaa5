"""A query as PUs see it: windows in ticks, operators over columns, and how results are lowered.

Time windows and count windows differ only in what their ticks are: times, or positions among the
events of a key. Everything else about them is arithmetic on range, slide and offset.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.aggregates.values import Kind
from paneflow.engines.multicore.contract import Batch, Result
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.slicing.columns import Column
from paneflow.windows import Count, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

NONE_MISSING = np.zeros(0, np.bool_)
"""In place of a mask: no value is missing."""


@dataclass(frozen=True)
class Span:
    """Window w holds the ticks offset + w*slide <= x < offset + w*slide + range."""

    label: int
    range: int
    slide: int
    offset: int
    by_count: bool = False
    least: int = -AFTER_ALL
    """The lowest number that a window may have."""

    @property
    def most(self) -> int:
        """The largest number of windows that an event belongs to: WPT in the thesis."""
        return -(-self.range // self.slide)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Range, slide, offset, and the lowest number of a window, for kernels."""
        return self.range, self.slide, self.offset, self.least

    def ended(self, tick: int) -> int:
        """The number of the last window that ends at a tick or before it."""
        return min((tick - self.offset - self.range) // self.slide, AFTER_ALL)


class Question:
    """The spans of the windows, what is folded, and how results are made of it."""

    def __init__(self, query: Query, kinds: Kinds) -> None:
        self.kinds = kinds
        self._lowering = Lowering(query.aggregates, kinds)
        self.spans = [
            _span(label, query.windows[name]) for label, name in enumerate(sorted(query.windows))
        ]
        self.operators: tuple[Operator, ...] = tuple(self._lowering.operators)
        self.counted: tuple[tuple[str, ...], ...] = tuple(filter(None, self._lowering.counted))
        self.in_order = any(a.laws.in_order for a in query.aggregates.values())
        """Whether events of a key have to be folded in order."""

    @functools.cached_property
    def by_count(self) -> bool:
        """Whether some window counts events."""
        return any(span.by_count for span in self.spans)

    def passed(self, limit: int) -> int:
        """The time before which all rows are known, once windows that end by the limit are emitted.

        Another event at the limit may complete a count window, which then ends there too.
        """
        return limit if self.by_count or limit == AFTER_ALL else limit + 1

    def lower(self, rows: Array, counts: Array, partials: list[Partials]) -> dict[str, Result]:
        """The results of many windows."""
        merged = dict(zip(self.operators, partials, strict=True))
        counted = dict(zip(self.counted, counts, strict=True)) | {(): rows}
        lowering = self._lowering
        return {
            name: Result(*lowering.lower(name, counted[lowering.columns(name)], merged))
            for name in lowering.aggregates
        }


class Inputs:
    """Events as operators read them; the first PU that needs a column converts it."""

    def __init__(
        self, question: Question, key: Array, t: Array, moments: Array, columns: dict[str, Column]
    ) -> None:
        self._question = question
        self.key = key
        self.t = t
        self.moments = moments
        self.columns = columns
        self._counted: Array | None = None
        self._inputs: list[tuple[Array, ...]] | None = None

    @classmethod
    def of(cls, question: Question, batch: Batch) -> Inputs:
        """All events of a batch."""
        return cls(question, batch.key, batch.t, batch.moments, batch.columns)

    @classmethod
    def none(cls, question: Question) -> Inputs:
        """No events, with columns of the types that the question reads."""
        none = np.zeros(0, np.int64)
        columns = {}
        for name, kind in question.kinds.items():
            type_ = pa.float64() if kind is Kind.FLOAT else pa.int64()
            columns[name] = Column(name, type_, kind, none.astype(type_.to_pandas_dtype()), None)
        return cls(question, none, none, none, columns)

    def part(self, which: Array | slice) -> Inputs:
        """Some of the events; views, if they are given by a slice."""
        columns = {name: column.part(which) for name, column in self.columns.items()}
        key, t = self.key[which], self.t[which]
        moments = t if self.moments is self.t else self.moments[which]
        return Inputs(self._question, key, t, moments, columns)

    @property
    def counted(self) -> Array:
        """Which events have all values, with a row for each set of columns that is counted.

        If no value is missing at all, rows are empty.
        """
        if self._counted is None:
            sets = self._question.counted
            missing = any(column.valid is not None for column in self.columns.values())
            counted = np.ones((len(sets), len(self.t) if missing else 0), np.bool_)
            for row, columns in zip(counted, sets, strict=True):
                present = self._present(columns)
                if len(present):
                    row[:] = present
            self._counted = counted
        return self._counted

    @property
    def inputs(self) -> list[tuple[Array, ...]]:
        """For each operator, which events it sees and what it reads of them."""
        if self._inputs is None:
            self._inputs = [
                (self._present(op.columns), *(self._form(i.column, i.form) for i in op.inputs))
                for op in self._question.operators
            ]
        return self._inputs

    def _present(self, columns: tuple[str, ...]) -> Array:
        valid = [self.columns[column].valid for column in columns]
        masks = [mask for mask in valid if mask is not None]
        return np.logical_and.reduce(masks) if masks else NONE_MISSING

    def _form(self, column: str, form: str) -> Array:
        return self.moments if column == TIME else self.columns[column].form(form)


def refusal(query: Query, kinds: Kinds, most_windows: int) -> str | None:
    """Why PUs cannot serve a query; None if they can."""
    for label, window in query.windows.items():
        if not isinstance(window, Sliding | Count):
            return (
                f"window {label!r} ({window}) is {window.window_class.value}: PUs deal out "
                f"windows by number, and its bounds do not follow from a number; use time or "
                f"count windows, or another strategy"
            )
        overlap = _span(0, window).most
        if overlap > most_windows:
            return (
                f"window {label!r} ({window}) overlaps {overlap:,} times, and each of these "
                f"windows would be updated by itself: use 'pane_line', or a longer slide"
            )
    by_time = any(isinstance(window, Sliding) for window in query.windows.values())
    for name, aggregate in query.aggregates.items():
        if not isinstance(aggregate, Constant):
            return (
                f"aggregate {name!r} ({aggregate}) keeps every value of a window, and windows "
                f"that travel between PUs hold partials of a fixed size; use another strategy"
            )
        if any(kinds[column] is Kind.TEXT for column in aggregate.columns):
            return (
                f"aggregate {name!r} ({aggregate}) reads text, and PUs share numbers alone: "
                f"use another strategy"
            )
        if by_time and isinstance(aggregate, Defined) and not aggregate.laws.commutative:
            return (
                f"aggregate {name!r} ({aggregate}) does not commute, and PUs keep partials and "
                f"not the events of time windows, among which an event that comes behind the "
                f"watermark would have to be put: use another strategy, or count windows alone"
            )
        for operator in aggregate.operators(kinds):
            if operator.fold_many is not None:
                return (
                    f"aggregate {name!r} ({aggregate}) is a sketch of another library, which "
                    f"takes many events at once and not one by one: use another strategy"
                )
            if not operator.compiled and Kind.TEMPORAL in (kinds[c] for c in operator.columns):
                return (
                    f"aggregate {name!r} ({aggregate}) runs as plain Python over times, which "
                    f"PUs hold as numbers: cast the column to integers, or use another strategy"
                )
    return None


def _span(label: int, window: object) -> Span:
    if isinstance(window, Sliding):
        return Span(label, window.range.value, window.slide.value, window.offset.value)
    assert isinstance(window, Count)
    # A stream does not know in time which window is the last, so `partial` has no effect.
    return Span(label, window.size, window.slide, 0, by_count=True, least=0)
