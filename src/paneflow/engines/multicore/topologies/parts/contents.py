"""What windows and panes hold: it travels from PU to PU and is joined there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paneflow.aggregates.operator import Array, Partials
from paneflow.engines.multicore.threads.short_loops import (
    close_up,
    close_up_across,
    concatenated,
    concatenated_across,
    marked,
    put,
    put_across,
    taken,
    taken_across,
)
from paneflow.engines.multicore.topologies.parts.question import Question

NUMBER, KEY, ROWS, FIRST, LAST, COUNTS = range(6)
"""The rows of `fields`; all rows from COUNTS on are counts."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What some windows or panes hold."""

    fields: Array
    """What every aggregate needs: a row for each kind, and a column for each window or pane."""
    partials: list[Partials]

    def __len__(self) -> int:
        return int(self.fields.shape[1])

    @property
    def number(self) -> Array:
        """The numbers of the windows or panes."""
        number: Array = self.fields[NUMBER]
        return number

    @property
    def key(self) -> Array:
        """The codes of their keys."""
        key: Array = self.fields[KEY]
        return key

    @property
    def rows(self) -> Array:
        """How many events they have."""
        rows: Array = self.fields[ROWS]
        return rows

    @property
    def first(self) -> Array:
        """The times of their first events."""
        first: Array = self.fields[FIRST]
        return first

    @property
    def last(self) -> Array:
        """The times of their last events."""
        last: Array = self.fields[LAST]
        return last

    @property
    def counts(self) -> Array:
        """For each counted set of columns, how many events have all its values."""
        counts: Array = self.fields[COUNTS:]
        return counts

    def until(self, end: int) -> Contents:
        """The first ones, as views."""
        return Contents(
            self.fields[:, :end], [tuple(c[:end] for c in partial) for partial in self.partials]
        )

    def chosen(self, which: Array) -> Contents:
        """Some of them, by place or by mask."""
        places = marked(which) if which.dtype == np.bool_ else which
        return Contents(
            taken_across(self.fields, places),
            [tuple(taken(c, places) for c in partial) for partial in self.partials],
        )

    def copy(self) -> Contents:
        """A copy in new memory."""
        return Contents(
            self.fields.copy(), [tuple(c.copy() for c in partial) for partial in self.partials]
        )

    def close_up(self, kept: Array) -> None:
        """Move those at increasing places to the front."""
        close_up_across(self.fields, kept)
        for partial in self.partials:
            for column in partial:
                close_up(column, kept)

    def fill(self, source: Contents) -> None:
        """Write others to the front."""
        put_across(source.fields, self.fields, 0)
        for ours, theirs in zip(self.partials, source.partials, strict=True):
            for mine, other in zip(ours, theirs, strict=True):
                put(other, mine, 0)


def room_for(question: Question, n: int) -> Contents:
    """Room for n windows or panes, not initialised."""
    fields = np.empty((COUNTS + len(question.counted), n), np.int64)
    return Contents(fields, [op.empty(n) for op in question.operators])


def joined(several: list[Contents]) -> Contents:
    """The contents of several, in order."""
    return Contents(
        concatenated_across([contents.fields for contents in several]),
        [
            tuple(map(concatenated, zip(*partials, strict=True)))
            for partials in zip(*(contents.partials for contents in several), strict=True)
        ],
    )
