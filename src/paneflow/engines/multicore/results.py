"""Result sets: they travel from PU to PU and collect the windows that have ended by their limit.

A window is collected by the first result set whose limit it has not outlived, so rows leave in
the order of their ends, whatever the PUs' speed (section 5.1.2 of the thesis).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.cells import Cells
from paneflow.engines.multicore.contents import Contents
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.holding import Loop
from paneflow.engines.multicore.question import Question, Span
from paneflow.engines.multicore.work import Work


@dataclass(frozen=True, eq=False)
class ResultSet:
    """Collects the windows that are final once a message has been worked on."""

    work: Work
    rows: list[Rows] = field(default_factory=list)
    parts: list[list[Contents]] = field(default_factory=list)
    """Parts of windows, for each span, as PUs have added them (`pane_line`)."""
    closing: bool = False
    """Whether it is the last of all, after a failure: it collects nothing."""

    def collect(self, question: Question, span: Span, cells: Cells) -> int:
        """Add a PU's windows that have ended; how many."""
        taken = cells.remove(_ended(span, cells.contents(), self.work))
        if len(taken):
            self.rows.append(as_rows(question, span, taken, self.work))
        return len(taken)


def as_rows(question: Question, span: Span, windows: Contents, work: Work) -> Rows:
    """Windows as rows: extents follow from numbers, results are lowered."""
    start, end = windows.first, windows.last
    if not span.by_count:
        start = windows.number * span.slide + span.offset
        end = start + span.range
    return Rows(
        np.full(len(windows), span.label, np.int32),
        windows.key,
        windows.number,
        start,
        end,
        question.lower(windows.rows, windows.counts, windows.partials),
        work.arrived,
        question.passed(work.limit),
    )


def ended_by(limit: int, rows: Rows) -> Rows:
    """Those rows whose windows had ended by a limit."""
    which = np.flatnonzero(rows.end <= limit)
    return Rows(
        rows.label[which],
        rows.key[which],
        rows.seq[which],
        rows.start[which],
        rows.end[which],
        {name: _taken(result, which) for name, result in rows.results.items()},
        rows.arrived,
        rows.passed,
    )


def joined(question: Question, work: Work, parts: list[Rows]) -> Rows:
    """The rows of several PUs as one."""
    if not parts:
        nothing = Cells(question).contents().chosen(np.zeros(0, np.int64))
        return as_rows(question, question.spans[0], nothing, work)
    if len(parts) == 1:
        return replace(parts[0], arrived=work.arrived, passed=question.passed(work.limit))
    return Rows(
        np.concatenate([rows.label for rows in parts]),
        np.concatenate([rows.key for rows in parts]),
        np.concatenate([rows.seq for rows in parts]),
        np.concatenate([rows.start for rows in parts]),
        np.concatenate([rows.end for rows in parts]),
        {name: _joined([rows.results[name] for rows in parts]) for name in parts[0].results},
        work.arrived,
        question.passed(work.limit),
    )


def _taken(result: Result, which: Array) -> Result:
    values = result.values
    taken = values.take(pa.array(which)) if isinstance(values, pa.Array) else values[which]
    return Result(taken, None if result.valid is None else result.valid[which])


def _joined(parts: list[Result]) -> Result:
    if isinstance(parts[0].values, pa.Array):
        values = pa.concat_arrays([part.values for part in parts])
    else:
        values = np.concatenate([part.values for part in parts])
    if all(part.valid is None for part in parts):
        return Result(values, None)
    masks = [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
    return Result(values, np.concatenate(masks))


def _ended(span: Span, held: Contents, work: Work) -> Array:
    """Which windows are to be given out."""
    if span.by_count:
        full: Array = (held.rows == span.range) & (held.last <= work.limit)
        return full
    if work.final:
        return np.ones(len(held), np.bool_)
    over: Array = held.number <= span.ended(work.limit)
    return over


class Expiry:
    """Tells whether a message ends windows, event by event: what the last PU of a line asks."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._reached: list[int] | None = None

    def due(self, work: Work) -> bool:
        """Whether a result set is to be made of a message."""
        if work.dummy:
            return False
        if self._question.by_count or work.final:
            return True
        spans = self._question.spans
        if self._reached is None:
            if work.events is None:
                return False
            self._reached = [span.ended(int(work.events.t[0])) for span in spans]
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
