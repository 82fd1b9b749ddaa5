"""Panes that stay, and windows that travel: section 9.4 of the thesis.

As in `pane_ring`, an event goes only to the PU that is responsible for its pane. But panes stay
there, and windows travel, in a line from the last PU to the first. They collect what each PU has of
them; the first PU merges the parts and emits the windows. There is no ring and no forwarding of
panes, and a window waits for nothing but that a PU has come as far. So latency does not grow with
the slide and the number of PUs, as it does in the ring.

The other improvements of that section are here too:

- *sub-panes*: a window is split into about `PIECES` pieces. If it has fewer panes, panes are cut
  into sub-panes, so that even a tumbling window is shared by many PUs; if it has more, neighbouring
  panes stay together, so that a window does not collect too many parts.
- *key-hash offsets*: the pieces of a key are shifted by the key's hash, so that at each moment all
  PUs have events, and not only one of them.
- *advancing messages*: every message tells every PU how far the stream has come; no PU waits for
  an event of its own, or for a dummy, to learn that a window has ended.

A window begins in one piece, ends in another, and contains all pieces between them. So what a PU
adds to a window is a piece from some pane on, or up to some pane: two scans over the panes of a
piece, one from each side, serve every window (`pieces.py`). Merging costs two combines for a pane
and one for a part, however finely windows slide.

How a window is split depends on the query, not on the number of PUs, and parts are merged in order
of time. So results are the same to the bit for any number of PUs, and aggregates may depend on the
order of events, which the thesis had to leave out.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.short_loops import order_of, places, taken
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.collecting import CollectingUnit
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.contents import Contents, joined
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.panes import Dealer, Share
from paneflow.engines.multicore.topologies.parts.pieces import PartsOf, Pieces
from paneflow.engines.multicore.topologies.parts.question import Question, Span
from paneflow.engines.multicore.topologies.parts.result_sets import ResultSet
from paneflow.engines.multicore.topologies.topology import Topology, under_way


class Ended:
    """Which windows of a span have ended, and which of them with the current message.

    Windows up to number `before` had ended with the previous message, and those up to `now` have
    ended now. Count windows have one number for each key, time windows one for all keys.
    """

    def __init__(self, span: Span) -> None:
        self._span = span
        self.before = np.full(0 if span.by_count else 1, -AFTER_ALL)
        self.now = self.before.copy()
        self._changed = np.zeros(0, np.int64)

    def advance(self, work: Work) -> bool:
        """Note a message, and return whether it may have ended windows."""
        if self._span.by_count:
            self._advance_keys(*(work.counted or (self._changed[:0],) * 2))
            return True
        span = self._span
        self.before = self.now
        if self.before[0] == -AFTER_ALL:
            self.before = np.array([span.ended(work.since)])
        self.now = np.array([AFTER_ALL if work.final else span.ended(work.limit)])
        return self.some

    def _advance_keys(self, keys: Array, counted: Array) -> None:
        self.before[self._changed] = self.now[self._changed]
        lacking = int(keys.max(initial=-1)) + 1 - len(self.now)
        if lacking > 0:
            more = np.full(max(lacking, len(self.now)), -1)
            self.before, self.now = np.append(self.before, more), np.append(self.now, more)
        self.now[keys] = np.maximum((counted - self._span.range) // self._span.slide, -1)
        self._changed = keys

    @property
    def base(self) -> int:
        """A lower bound for the numbers of the windows that have just ended."""
        return 0 if self._span.by_count else int(self.before[0])

    @property
    def some(self) -> bool:
        """Whether a window has just ended."""
        if self._span.by_count:
            return bool((self.now[self._changed] > self.before[self._changed]).any())
        return bool(self.now[0] > self.before[0])

    def listed(self, panes: Pieces) -> tuple[Array, Array, Array]:
        """List the panes that may be in count windows that have just ended, key by key.

        Returns their numbers, their keys, and which of them no later window needs.
        """
        keys = self._changed[self.now[self._changed] > self.before[self._changed]]
        first = (self.before[keys] + 1) * panes.per_slide
        several = self.now[keys] * panes.per_slide + panes.per_window - first
        starts = np.cumsum(several) - several
        numbers = np.arange(int(several.sum())) + np.repeat(first - starts, several)
        key = np.repeat(keys, several)
        return numbers, key, numbers < (self.now[key] + 1) * panes.per_slide


class PaneLineUnit(CollectingUnit):
    """A PU that folds its own panes, and adds its parts to passing windows."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses, question, workers)
        self.shares: Ring[Share] = Ring(under_way(workers), self.bell)
        self.panes = [Pieces(span) for span in question.spans]
        self._parts_of = PartsOf(question)
        self._open = [Cells(question) for _ in question.spans]
        self._ended = [Ended(span) for span in question.spans]
        self._windows = Cells(question)
        self._added: dict[int, list[Contents]] = {}
        self._bases: dict[int, list[int]] = {}
        """For each message that ended windows: what this PU adds, and where numbers begin."""
        self._in_order = True
        """Whether panes were created in the order of their numbers; stragglers may break it."""

    @property
    def depth(self) -> int:
        return len(self.shares) + len(self.sets)

    def step(self) -> bool:
        if self.pass_on_before(self.applied):
            return True
        share = self.shares.take()
        if share is None:
            return self.close_after_failure()
        self.counts["tuples"] += len(share)
        self.attempt(share.work.seq, lambda: self._work_on(share))
        self.applied_one()
        return True

    def _work_on(self, share: Share) -> None:
        for mine, cells in zip(share.events, self._open, strict=True):
            if mine is not None:
                events, numbers = mine
                self.counts["pane_updates"] += cells.absorb(events, places(len(numbers)), numbers)
        self._in_order &= not (share.work.behind and len(share))
        if self.rightmost:
            self.counts["result_checks"] += len(share.work)
        over = [ended.advance(share.work) for ended in self._ended]
        if any(over) or share.work.final:
            self._bases[share.work.seq] = [ended.base for ended in self._ended]
            self._added[share.work.seq] = [
                self._parts(*each) for each in zip(self.panes, self._open, self._ended, strict=True)
            ]
            if self.rightmost:
                self.sets.put(ResultSet(share.work))

    def _parts(self, panes: Pieces, cells: Cells, ended: Ended) -> Contents:
        """What these panes add to windows that have just ended; drops panes no longer needed."""
        held = cells.contents()
        if not ended.some:
            return held.chosen(places(0))
        if panes.span.by_count:
            numbers, keys, last = ended.listed(panes)
            at = cells.find(numbers, keys)
            concerned = held.chosen(at[at >= 0])
        elif self._in_order:
            concerned = held
        else:
            concerned = held.chosen(order_of(held.number))
        parts, scanned = self._parts_of(panes, concerned, ended.before, ended.now, ended.base)
        self.counts["window_updates"] += scanned
        self.counts["windows_found"] += len(parts)
        if panes.span.by_count:
            cells.remove_at(np.sort(at[last & (at >= 0)]), at[:0])
        else:
            cells.drop(held.number // panes.per_slide <= ended.now[0])
        return parts

    def collect(self, found: ResultSet) -> None:
        """Add this PU's parts to the passing windows; the first PU merges them."""
        self.counts["result_sets"] += 1
        found.parts.append(self._added.pop(found.work.seq))
        bases = self._bases.pop(found.work.seq)
        if self.left is not None:
            return
        for k, panes in enumerate(self.panes):
            parts = joined([added[k] for added in found.parts])
            order = order_of(parts.number)
            numbers = taken(parts.number, order) // panes.parts + bases[k]
            self.counts["window_updates"] += self._windows.merge(parts, order, numbers)
            windows = self._windows.take()
            self.counts["results"] += found.add(self.question, panes.span, windows)


class PaneLine(Topology):
    """The alternative structure of section 9.4."""

    name: ClassVar[str] = "pane_line"
    most_windows: ClassVar[int] = AFTER_ALL

    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        units = [
            PaneLineUnit(self._crew, rank, pauses, self._question, workers)
            for rank in range(workers)
        ]
        for rank, unit in enumerate(units):
            unit.left = units[rank - 1] if rank else None
        self._units = units
        panes = [Pieces(span) for span in self._question.spans]
        for each in panes:
            PartsOf(self._question).warm(each)
        together = [p.together for p in panes]
        self._dealer = Dealer([*panes], together, True, workers)

    def _send(self, work: Work) -> None:
        self._room.wait(self._check_open)
        for unit, share in zip(self._units, self._dealer.shares(work), strict=True):
            self._room.sent(unit.rank)
            unit.shares.put(share)
