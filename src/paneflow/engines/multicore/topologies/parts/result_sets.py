"""Result sets travel from PU to PU and collect the windows that have ended by their limit.

A window joins the first result set whose limit is at or after its end, so rows leave in the order
of their ends, however fast the PUs are (section 5.1.2 of the thesis).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.threads.short_loops import Loop, concatenated, concatenated_across
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.contents import FIRST, KEY, LAST, NUMBER, Contents
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question, Span


@dataclass(frozen=True, eq=False)
class Finished:
    """Finished windows of one span."""

    span: Span
    fields: Array
    """As in `Contents`."""
    results: dict[str, Result]

    def __len__(self) -> int:
        return int(self.fields.shape[1])

    @property
    def extents(self) -> tuple[Array, Array]:
        """When windows start and end."""
        if self.span.by_count:
            return self.fields[FIRST], self.fields[LAST]
        start = self.fields[NUMBER] * self.span.slide + self.span.offset
        return start, start + self.span.range

    def ended_by(self, limit: int) -> Finished:
        """The windows that had ended by a limit."""
        which = np.flatnonzero(self.extents[1] <= limit)
        results = {name: _taken(result, which) for name, result in self.results.items()}
        return Finished(self.span, self.fields[:, which], results)


@dataclass(frozen=True, eq=False)
class ResultSet:
    """Collects the windows that are final once a message has been processed."""

    work: Work
    windows: list[Finished] = field(default_factory=list)
    parts: list[list[Contents]] = field(default_factory=list)
    """Parts of windows that PUs have added, for each span (`pane_line`)."""
    closing: bool = False
    """Whether it is the very last one, after a failure, which collects nothing."""

    def collect(self, question: Question, span: Span, cells: Cells) -> int:
        """Add the windows of a PU that have ended; return how many."""
        if span.by_count:
            return self.add(question, span, self._full(span, cells))
        if not self.work.final and cells.least > span.ended(self.work.limit):
            return 0
        return self.add(question, span, cells.remove(_ended(span, cells.contents(), self.work)))

    def _full(self, span: Span, cells: Cells) -> Contents:
        """Take out the count windows that were complete by the limit."""
        held, touched = cells.contents(), cells.touched()
        full = touched[held.rows[touched] == span.range]
        over = held.last[full] <= self.work.limit
        return cells.remove_at(full[over], full[~over])

    def add(self, question: Question, span: Span, windows: Contents) -> int:
        """Add windows, with their results; return how many."""
        if len(windows):
            results = question.lower(windows.rows, windows.counts, windows.partials)
            self.windows.append(Finished(span, windows.fields, results))
        return len(windows)

    def rows(self, question: Question) -> Rows:
        """The windows of all PUs as rows."""
        of_spans = ([some for some in self.windows if some.span is span] for span in question.spans)
        every = [_joined(several) for several in of_spans if several] or [_nothing(question)]
        extents = [some.extents for some in every]
        return Rows(
            concatenated([np.full(len(some), some.span.label, np.int32) for some in every]),
            concatenated([some.fields[KEY] for some in every]),
            concatenated([some.fields[NUMBER] for some in every]),
            concatenated([start for start, _ in extents]),
            concatenated([end for _, end in extents]),
            {
                name: _results_joined([some.results[name] for some in every])
                for name in every[0].results
            },
            self.work.arrived,
            question.passed(self.work.limit),
        )


def _nothing(question: Question) -> Finished:
    none = Cells(question).take()
    results = question.lower(none.rows, none.counts, none.partials)
    return Finished(question.spans[0], none.fields, results)


def _joined(several: list[Finished]) -> Finished:
    """Windows of one span that were finished by several PUs."""
    if len(several) == 1:
        return several[0]
    return Finished(
        several[0].span,
        concatenated_across([some.fields for some in several]),
        {
            name: _results_joined([some.results[name] for some in several])
            for name in several[0].results
        },
    )


def _results_joined(parts: list[Result]) -> Result:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0].values, pa.Array):
        values = pa.concat_arrays([part.values for part in parts])
    else:
        values = concatenated([part.values for part in parts])
    if all(part.valid is None for part in parts):
        return Result(values, None)
    masks = [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
    return Result(values, concatenated(masks))


def _taken(result: Result, which: Array) -> Result:
    values = result.values
    taken = values.take(pa.array(which)) if isinstance(values, pa.Array) else values[which]
    return Result(taken, None if result.valid is None else result.valid[which])


def _ended(span: Span, held: Contents, work: Work) -> Array:
    """Which windows are to be emitted."""
    if work.final:
        return np.ones(len(held), np.bool_)
    over: Array = held.number <= span.ended(work.limit)
    return over


class Expiry:
    """Tells whether a message ends windows; the last PU of a line asks it for every event."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._reached: list[int] | None = None

    def due(self, work: Work) -> bool:
        """Whether a message needs a result set."""
        if work.dummy:
            return False
        if self._question.by_count or work.final:
            return True
        spans = self._question.spans
        if self._reached is None:
            if work.events is None:
                return False
            begun = work.since if work.behind else int(work.events.t[0])
            self._reached = [span.ended(begun) for span in spans]
        due = False
        for k, span in enumerate(spans):
            reached = max(self._reached[k], span.ended(work.limit))
            if work.events is not None:
                first_end = span.range + span.offset
                reached = _reach(len(work), work.events.t, self._reached[k], first_end, span.slide)
            due |= reached > self._reached[k]
            self._reached[k] = reached
        return due


@Loop
def _reach(times, reached, first_end, slide):  # type: ignore[no-untyped-def]
    for t in times:
        reached = max(reached, (t - first_end) // slide)
    return reached
