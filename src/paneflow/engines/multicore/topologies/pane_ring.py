"""The Round-Robin-Cyclic Pane-based approach (RRCPA, chapter 9 of the thesis): a ring of panes.

An event goes to one PU only, the one that is responsible for its pane; panes are assigned to PUs in
turn, and so are windows. Expired panes travel round the ring counterclockwise, as far as there are
windows that they contribute to, and each PU merges them into its windows. They are forwarded by
the rules of chapter 7: a PU has a queue of its own finished panes and one of the previous PU's,
and takes the earlier.

Stragglers of an expired pane make another pane with the same number, which travels on its own to
the windows that are still open.

All panes of one PU that expire with the same message travel together, under the number of that
message. Every message tells every PU how far the stream has come, so a pane expires as soon as the
stream has passed it, not when its PU receives its next event. When panes arrive from the last PU
whose panes the windows here need, all others have arrived before, so this PU is safe up to their
message and merges them, in order of time.

The last PU makes a result set when panes end their journey there, as every P-th pane does, or when
a watermark asks for it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.short_loops import Loop, order_of, places
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.topologies.collecting import Holder
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.contents import Contents, joined
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.panes import Dealer, Panes, Share
from paneflow.engines.multicore.topologies.parts.question import Question
from paneflow.engines.multicore.topologies.parts.result_sets import Finished, ResultSet
from paneflow.engines.multicore.topologies.topology import Topology, under_way
from paneflow.engines.multicore.tuning import tuning


@dataclass(frozen=True, eq=False)
class Expired:
    """The panes of one PU that have expired with a message, for each span."""

    work: Work
    origin: int
    panes: list[Contents]


class PaneRingUnit(Holder):
    """A PU that folds its own panes, and merges all panes into its own windows."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses, question, workers)
        self.shares: Ring[Share] = Ring(under_way(workers), self.bell)
        # What has expired at other PUs with messages that are not merged here yet.
        self.previous: Ring[Expired] = Ring(under_way(workers) * workers, self.bell)
        self.successor: PaneRingUnit = self
        self.panes = [Panes(span) for span in question.spans]
        self.stops = min(workers, max(span.most for span in question.spans))
        self._open = [Cells(question, span.by_count) for span in question.spans]
        self._passed: list[int] | None = None
        self._finished: deque[Expired] = deque()
        self._sent = -1
        self._received: dict[int, list[Expired]] = {}
        self._merged = -1
        self._latest: deque[Work] = deque(maxlen=2 * under_way(workers))
        """The last messages that were merged, as many as other PUs may be behind."""
        self._waiting = 0
        self._stranded: list[Finished] = []

    @property
    def depth(self) -> int:
        return len(self.shares) + len(self.previous) + len(self.sets)

    def step(self) -> bool:
        if self.pass_on_before(self._merged + 1):
            return True
        expired = self._choose()
        if expired is not None:
            self._pass_panes(expired)
            return True
        share = self.shares.take()
        if share is None:
            return self.close_after_failure()
        self.counts["tuples"] += len(share)
        self.attempt(share.work.seq, lambda: self._fold(share))
        if not self._expire(share.work):
            self.applied_one()
        return True

    def _fold(self, share: Share) -> None:
        """Add this PU's events to their panes."""
        for mine, cells in zip(share.events, self._open, strict=True):
            if mine is not None:
                events, numbers = mine
                self.counts["pane_updates"] += cells.absorb(events, places(len(numbers)), numbers)

    def _expire(self, work: Work) -> bool:
        """Queue expired panes, if the stream has passed the end of any pane."""
        now = [panes.at(work.limit) for panes in self.panes]
        if self._passed is None:
            self._passed = [panes.at(work.since) for panes in self.panes]
        staying = now == self._passed and not self.question.by_count
        if staying and work.events is not None and not work.behind:
            return False
        self._passed = now
        leaving = []
        for panes, cells, end in zip(self.panes, self._open, now, strict=True):
            held = cells.contents()
            if panes.span.by_count:
                touched = cells.touched()
                full = touched[panes.full(held.chosen(touched))]
                leaving.append(cells.remove_at(full, full[:0]))
            elif cells.least >= end:
                leaving.append(held.chosen(places(0)))
            else:
                leaving.append(cells.remove(held.number < end))
        self._finished.append(Expired(work, self.rank, leaving))
        return True

    def _choose(self) -> Expired | None:
        """The four rules, for panes."""
        own = self._finished[0] if self._finished else None
        there = self.previous.head
        if there is not None and there.work.seq <= self._sent:
            return self.previous.take()
        if own is None:
            return None
        self._sent = own.work.seq
        return self._finished.popleft()

    def _pass_panes(self, expired: Expired) -> None:
        hop = (expired.origin - self.rank) % self.workers
        self.counts["panes_forwarded"] += sum(map(len, expired.panes))
        self._received.setdefault(expired.work.seq, []).append(expired)
        if hop < self.stops - 1:
            self.successor.previous.put(expired)
            self.pause()
        else:
            # The last stop on its way: everything earlier has arrived.
            together = self._received.pop(expired.work.seq)
            self._merged = expired.work.seq
            if self.attempt(expired.work.seq, lambda: self._merge(together)) and self.rightmost:
                self._make_result_set(expired)
            # Only now, so that a delayed PU also delays the feeder. Otherwise messages that others
            # processed long ago would fill its ring.
            self.applied_one()

    def _merge(self, together: list[Expired]) -> None:
        """Merge panes into the windows they belong to."""
        for k, (panes, cells) in enumerate(zip(self.panes, self.cells, strict=True)):
            come = joined([expired.panes[k] for expired in together])
            come = come.chosen(order_of(come.number))
            open_ = together[0].work.open(panes.span)
            most = -(-panes.span.most // self.workers)
            which, numbers, step = self.pairs(most)
            for start in range(0, len(come), step):
                found = _windows_in_turn(
                    min(step, len(come) - start) * most,
                    come.number,
                    start,
                    start + step,
                    (panes.per_window, panes.per_slide, open_.least),
                    self.rank,
                    self.workers,
                    which,
                    numbers,
                )
                self.counts["windows_found"] += found
                self.counts["window_updates"] += cells.merge(come, which[:found], numbers[:found])

    def _make_result_set(self, expired: Expired) -> None:
        self.counts["result_checks"] += sum(map(len, expired.panes))
        self._latest.append(expired.work)
        self._waiting += 1
        if (
            any(len(panes) for panes in expired.panes)
            or expired.work.events is None
            or self.question.by_count
            or self._waiting == tuning.under_way
        ):
            self._waiting = 0
            self.sets.put(ResultSet(expired.work))

    def strand(self, found: ResultSet) -> None:
        # Not every message makes a result set, so this one may hold windows that ended earlier.
        self._stranded += found.windows

    def collect(self, found: ResultSet) -> None:
        super().collect(found)
        found.windows.extend(some.ended_by(found.work.limit) for some in self._stranded)
        self._stranded.clear()

    def close_after_failure(self) -> bool:
        failure = self.crew.failure
        if failure is None or any(seq < failure.seq for seq in self._received):
            return False
        if self.rightmost and self.applied >= failure.seq and not self._closed:
            # What was merged before the failure is final, even if no result set was due.
            before = [work for work in self._latest if work.seq < failure.seq]
            if before:
                self.pass_on(ResultSet(before[-1]))
        return super().close_after_failure()


class PaneRing(Topology):
    """RRCPA."""

    name: ClassVar[str] = "pane_ring"
    prompt: ClassVar[bool] = False

    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        units = [
            PaneRingUnit(self._crew, rank, pauses, self._question, workers)
            for rank in range(workers)
        ]
        for rank, unit in enumerate(units):
            unit.successor = units[rank - 1]
            unit.left = units[rank - 1] if rank else None
        self._units = units
        panes = [Panes(span) for span in self._question.spans]
        together = [p.per_slide for p in panes]
        self._dealer = Dealer(panes, together, False, workers)

    def _send(self, work: Work) -> None:
        self._room.wait(self._check_open)
        for unit, share in zip(self._units, self._dealer.shares(work), strict=True):
            self._room.sent(unit.rank)
            unit.shares.put(share)


@Loop
def _windows_in_turn(  # type: ignore[no-untyped-def]
    pane, start, end, span, rank, workers, which, numbers
):
    per_window, per_slide, lowest = span
    found = 0
    for i in range(start, min(end, len(pane))):
        first = max((pane[i] - per_window) // per_slide + 1, lowest)
        first += (rank - first) % workers
        for window in range(first, pane[i] // per_slide + 1, workers):
            which[found] = i
            numbers[found] = window
            found += 1
    return found
