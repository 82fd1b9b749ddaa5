"""The steps of a stream: events in order, windows, rows in order.

The front puts what has arrived in order, a strategy makes windows of it, the collector puts rows in
order, and the outbox keeps them. Only the thread that has the turn works here (`turns.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.values import kind_of
from paneflow.engines.live.stream_options import StreamOptions, marked
from paneflow.engines.multicore.completeness import Completeness
from paneflow.engines.multicore.contract import Pauses, Strategy
from paneflow.engines.multicore.intake.front import Arrival, Front
from paneflow.engines.multicore.intake.row_guard import RowGuard
from paneflow.engines.multicore.intake.unordered_front import UnorderedFront
from paneflow.engines.multicore.intake.unread import Unread
from paneflow.engines.multicore.multiway.hive_front import HiveFront
from paneflow.engines.multicore.multiway.hive_units import HiveStrategy
from paneflow.engines.multicore.multiway.source_front import AddingFront
from paneflow.engines.multicore.one_worker.single import Single
from paneflow.engines.multicore.pump.early_rows import EarlyRows
from paneflow.engines.multicore.pump.last_steps import LastSteps, may_fail
from paneflow.engines.multicore.pump.metrics import Histogram
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.pump.row_order import RowOrder, portions
from paneflow.engines.multicore.pump.step_length import StepLength
from paneflow.engines.multicore.slices.slices import Slices, commute
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.active import Active

if TYPE_CHECKING:
    from paneflow.query import Query


class Setup(NamedTuple):
    """What a stream is set up with, once the types of its columns are known."""

    query: Query
    schema: pa.Schema
    strategy: type[Strategy]
    workers: int
    sources: int
    pauses: Pauses | None
    merge: str
    options: StreamOptions


class Pipeline:
    """Everything that events pass through on their way to rows."""

    def __init__(self, setup: Setup, outbox: Outbox, late: Outbox) -> None:
        query, schema, strategy, workers, sources, pauses, merge, options = setup
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(schema).items()}
        alone = issubclass(strategy, Single)
        self._guard = RowGuard(query, options.max_rows)
        front = strategy.front
        if front is not None and front.unseen and not self._may_pass(setup):
            front = None
        self.front: Front = (front or Front)(query, schema, sources, options.updates)
        self.strategy: Strategy
        if issubclass(strategy, Single | Slices | Active):
            self.strategy = strategy(query, kinds, workers, pauses, merge)
        elif isinstance(self.front, HiveFront):
            assert issubclass(strategy, HiveStrategy)
            self.strategy = self.front.hive = strategy(query, kinds, workers, pauses, sources)
        else:
            self.strategy = strategy(query, kinds, workers, pauses)
        self._reading: Slices | None = None
        """The strategy, if its workers read what was pushed themselves."""
        if isinstance(self.strategy, Slices) and self._needs_no_order(query, kinds, sources):
            self._reading = self.strategy
            self._reading.take_over(self._guard)
            self.front = UnorderedFront(query, schema, sources, workers)
        self.adding = self.front if isinstance(self.front, AddingFront) else None
        """The front, if pushing threads are to add to it."""
        self.collector = RowOrder(query, schema, self.front.keys)
        self.latency = Histogram()
        self._outbox = outbox
        self._late = late
        self._early: EarlyRows | None = None
        if options.updates:
            assert isinstance(self.strategy, Single)
            self._early = EarlyRows(query, self.front, self.strategy, self.collector)
        self._passing = Completeness(query)
        self._last_steps = LastSteps(query, kinds) if may_fail(query) and not alone else None
        longest = tuning.longest_step if alone else tuning.longest_shared_step
        self.most_waiting = tuning.most_waiting
        """Events that may wait to be taken."""
        if self._reading is not None:
            # Workers read what was pushed, and need long batches to have little to do with locks.
            longest = tuning.dealt_at_once * workers
            self.most_waiting = 2 * tuning.most_waiting
        self.length = StepLength(longest, outbox.most)

    def _needs_no_order(self, query: Query, kinds: Kinds, sources: int) -> bool:
        """Whether events may be processed as they were pushed, and not in total order.

        Windows that are watched are watched from event to event, which takes the order; and if
        user-defined functions fail, rows are returned up to the event they fail on.
        """
        in_order = sources == 1 and query.lateness.value == 0
        return (
            commute(query, kinds) and not may_fail(query) and (in_order or not self._guard.watches)
        )

    def _may_pass(self, setup: Setup) -> bool:
        """Whether events may go past the stream thread.

        Not if it has to see them: to repeat the last steps after a failure, to watch for leaps in
        time, or to know when a source fell silent between them.
        """
        return not (may_fail(setup.query) or self._guard.watches or setup.options.idle is not None)

    @property
    def pending(self) -> bool:
        """Whether the strategy has yet to return rows that are final by the watermark."""
        passed = self._passing.passed(self.front.watermark)
        return self.collector.passed < passed and not self.strategy.brief

    def step(self, arrivals: list[Arrival]) -> None:
        """Process what has arrived."""
        if self._reading is not None:
            self._pass_on(self._reading, arrivals)
        else:
            self._step_in_order(arrivals)
        self.length.took(sum(arrival.rows for arrival in arrivals), self.front.watermark)

    def _pass_on(self, strategy: Slices, arrivals: list[Arrival]) -> None:
        """Let workers read what has arrived."""
        assert isinstance(self.front, UnorderedFront)
        steps = self.front.take_unread(arrivals)
        self._put_late()
        for step in steps:
            if isinstance(step, Unread):
                strategy.feed_unread(step)
            elif isinstance(step, int):
                strategy.advance(step)
            else:
                strategy.feed(step)

    def _step_in_order(self, arrivals: list[Arrival]) -> None:
        """Put what has arrived in order, and let workers have what is final."""
        steps = self.front.take(arrivals)
        self._put_late()
        for step in steps:
            if self._last_steps is not None:
                self._last_steps.add(step, self.collector.passed)
            if isinstance(step, int):
                self._guard.advance(step)
                self.strategy.advance(step)
                continue
            self._guard.feed(step)
            self._passing.note(step)
            self._passing.settle()
            self.strategy.feed(step)

    def _put_late(self) -> None:
        for events in self.front.late_events():
            self._late.put(events, hand_over=False)

    def gather(self) -> None:
        """Make readable what the strategy has finished."""
        for rows in portions(self.strategy.take()):
            self.collector.add(rows)
            self._put_final()

    def _put_final(self) -> None:
        """Make the rows readable that no other can come before."""
        collected = self.collector.collect()
        given = 0
        if collected is not None:
            now = time.perf_counter()
            for arrived, rows in collected.arrivals:
                self.latency.add(now - arrived, rows)
            table = collected.table if self._early is None else marked(collected.table, final=True)
            self._outbox.put(table, hand_over=self.strategy.brief)
            given = table.num_rows
        self.length.gave(given, self.collector.passed)

    def show_early(self) -> None:
        """Make readable the rows of open windows that have changed, if they are asked for."""
        if self._early is None:
            return
        rows = self._early.changed(self._guard)
        if rows is not None:
            self._outbox.put(marked(rows, final=False), hand_over=False)

    def finish(self) -> None:
        """Close all windows, as no more events will come, and make their rows readable."""
        if self._last_steps is not None:
            self._last_steps.ending = True
        self.strategy.finish()
        self.gather()
        self.strategy.check()  # some lower windows only as their rows are taken

    def drain(self) -> None:
        """Make the rows readable that are final, and drop the rest."""
        final = self._passing.passed(self.front.watermark)
        self.strategy.finish()
        self.collector.add(self.strategy.take())
        self.strategy.check()
        self.collector.passed = final
        self._put_final()

    def rescue(self) -> None:
        """Make readable what was final before a failure."""
        quiet = time.monotonic() + tuning.rescue
        while time.monotonic() < quiet:
            rows = self.strategy.take()
            self.collector.add(rows)
            if rows:
                quiet = time.monotonic() + tuning.rescue
            time.sleep(tuning.rescue / 10)
        self.gather()
        if self._last_steps is not None:
            self.collector.replace(self._last_steps.again(self.collector.passed))
            self.gather()
