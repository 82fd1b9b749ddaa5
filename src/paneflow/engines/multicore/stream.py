"""A live stream: push events, read rows; threads in this process do the rest.

Rows are those that `query.over` gives for all events pushed, in the same order, whatever the
strategy, the number of workers, and the way in which events were cut into batches.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow._faces import table_html
from paneflow.aggregates.values import kind_of
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.multicore.choosing import StreamPlan, choose, without_partial
from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.intake.admission import Admission
from paneflow.engines.multicore.pump.metrics import Histogram, StreamMetrics
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.pump.pipeline import Setup
from paneflow.engines.multicore.pump.pump import Pump
from paneflow.engines.multicore.threads.forks import forks
from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from paneflow.errors import InputError, PaneflowError, QueryError

if TYPE_CHECKING:
    from paneflow.query import Query


class Stream:
    """An open stream; made by `query.open`.

    >>> import paneflow as pf
    >>> from paneflow import windows as W, aggregates as A
    >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
    >>> with query.open() as stream:
    ...     stream.push([{"t": 1, "v": 5}, {"t": 4, "v": 7}])
    ...     stream.push([{"t": 9, "v": 2}])
    ...     stream.finish()
    ...     for rows in stream.results():
    ...         print(rows["end"].to_pylist(), rows["peak"].to_pylist())
    [5, 10] [7, 2]
    """

    def __init__(
        self,
        query: Query,
        workers: int = 1,
        strategy: str = "auto",
        sources: int = 1,
        pauses: Pauses | None = None,
        *,
        options: StreamOptions | None = None,
    ) -> None:
        for name, number, most in (("workers", workers, 1024), ("sources", sources, 2**16)):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if not whole or not 1 <= number <= most:
                raise QueryError(f"{name} must be a whole number from 1 to {most}, not {number!r}")
        self._query = without_partial(query)
        self._workers = workers
        self._strategy = strategy
        self._sources = sources
        self._pauses = pauses
        self._options = options or StreamOptions()
        self._ended_sources: set[int] = set()
        self._admission = Admission(self._query, self._options.late)
        self._timeless = 0
        self._state = "open"
        self._lock = threading.RLock()
        self._begun = Waiters(self._lock)
        """Those who wait until there is something to wait for, or there never will be."""
        self._process = os.getpid()
        self._forks = forks.count
        self._core: Pump | None = None
        kinds = {c: kind_of(pa.float64(), c) for a in query.aggregates.values() for c in a.columns}
        self._plan = choose(self._query, kinds, workers, strategy)[1]

    @property
    def plan(self) -> StreamPlan:
        """How the stream is answered, with the reasons; final once the first events have come."""
        return self._plan

    def push(self, batch: Any, source: int = 0) -> None:
        """Take events in: pyarrow, pandas, polars, or a list of dicts.

        A batch that does not fit is refused as a whole. Waits while the stream is behind.
        """
        self._check_open("push")
        self._check_source(source)
        admitted = self._admission.admit(batch, source)
        if admitted.batch is not None and admitted.batch.num_rows:
            core = self._core if self._core is not None else self._running()
            core.push(source, admitted)
        else:
            self._timeless += admitted.timeless

    def end_source(self, source: int) -> None:
        """Say that a source will bring no more, so that it holds nothing back."""
        self._check_open("end_source")
        self._check_source(source)
        with put_off, self._lock:
            self._ended_sources.add(source)
            if self._core is not None:
                self._core.end_source(source)

    def results(self, wait: float = 0.0) -> Iterator[pa.Table]:
        """The rows that are final so far, as tables, in order: (end, window, seq, key).

        It ends when there are no more at the moment; `wait` lets it wait so many seconds for the
        next. After `finish` it gives everything that is left, and ends with the stream.
        """
        self._check_process()
        as_given = self._admission.as_given
        return self._read(lambda core: core.results, _seconds(wait), as_given)

    def late(self, wait: float = 0.0) -> Iterator[pa.Table]:
        """The events that came too late, as tables, in the order in which they came.

        For streams that were opened with `late=True`. Events have all the columns they were
        pushed with; where pushes differ in their columns, tables do too. Like `results`, it ends
        when there are no more at the moment, waits up to `wait` seconds for the next, and after
        `finish` gives everything that is left.
        """
        self._check_process()
        if not self._options.late:
            raise QueryError(
                "this stream only counts late events, in stream.metrics().late: pass late=True "
                "to query.open to get them"
            )
        return self._read(lambda core: core.late, _seconds(wait), lambda events: events)

    def _read(
        self,
        box: Callable[[Pump], Outbox],
        wait: float,
        as_given: Callable[[pa.Table], pa.Table],
    ) -> Iterator[pa.Table]:
        self._await_begin(wait)
        # An interrupt may come between any two lines here. Tables stay in `taken` until the
        # reader has them: it is then that `yield` returns, or raises.
        taken: list[pa.Table] = []
        try:
            while self._core is not None:
                box(self._core).read(wait, taken)
                if not taken:
                    return
                table = as_given(taken[0])
                try:
                    yield table
                finally:
                    taken.clear()
        finally:
            if taken and self._core is not None:
                box(self._core).give_back(taken)

    def finish(self) -> None:
        """Say that no more events will come: everything closes, and `results` gives it."""
        self._check_process()
        if self._state == "finished":
            return
        self._check_open("finish")
        with put_off, self._lock:
            self._state = "finished"
            self._begun.wake()
            if self._core is not None:
                for source in set(range(self._sources)) - self._ended_sources:
                    self._core.end_source(source)
                self._core.finish()

    def close(self) -> None:
        """End the threads. Rows that were final by what was pushed can still be read."""
        self._check_process()
        with put_off, self._lock:
            self._state = "closed"
            self._begun.wake()
            if self._core is not None:
                self._core.close()
        if self._core is not None:
            self._core.await_end()

    def metrics(self) -> StreamMetrics:
        """What the stream has done so far, as a whole and by processing unit."""
        self._check_process()
        if self._core is None:
            nothing = Histogram().latency()
            return StreamMetrics(0, 0, self._timeless, 0, 0, 0, 0, None, nothing, ())
        return self._core.metrics(self._timeless)

    def __repr__(self) -> str:
        shown = (f"{name}={', '.join(items)}" for name, items in self._parts().items())
        return f"Stream({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return table_html("Stream", self._parts())

    def _parts(self) -> dict[str, list[str]]:
        """What a stream shows of itself: how it runs, and whether it still does."""
        return {
            "state": [self._state],
            "strategy": [self._plan.strategy],
            "workers": [str(self._workers)],
            "sources": [str(self._sources)],
        }

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._forks != forks.count:  # the threads have stayed with the parent
            return
        try:
            if error is not None:
                self._abandon()
            self.close()
        except BaseException:  # an interrupt: leave at once
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._core is not None:
            self._core.abandon()

    def _running(self) -> Pump:
        """The stream's inside, which begins with the first events: only then are types known."""
        schema = self._admission.schema
        assert schema is not None
        kinds = {n: kind_of(type_, n) for n, type_ in self._query.types(schema).items()}
        with put_off, self._lock:
            self._check_open("push")
            strategy, plan = choose(self._query, kinds, self._workers, self._strategy)
            if self._core is None:
                self._plan = plan
                core = Pump(
                    Setup(
                        self._query,
                        schema,
                        strategy,
                        self._workers,
                        self._sources,
                        self._pauses,
                        self._options,
                    )
                )
                # The thread holds the inside and not the stream, so a dropped stream ends it.
                weakref.finalize(self, core.abandon)
                for source in self._ended_sources:
                    core.end_source(source)
                self._core = core
                self._begun.wake()
            return self._core

    def _await_begin(self, wait: float) -> None:
        """Wait so long for the first events."""
        with put_off, self._lock:
            if self._core is not None or self._state != "open" or wait <= 0:
                return
            waiter = self._begun.enrol()
        self._begun.sleep(waiter, wait)

    def _check_process(self) -> None:
        if self._forks != forks.count:
            raise PaneflowError(
                f"this stream was opened in process {self._process}, and its threads have stayed "
                f"there when this one was forked: open another one here with query.open()"
            )

    def _check_open(self, what: str) -> None:
        if self._forks != forks.count:
            self._check_process()
        if self._core is not None:
            self._core.check()
        if self._state != "open":
            raise PaneflowError(
                f"{what} on a stream that is {self._state}: open another one with query.open()"
            )

    def _check_source(self, source: int) -> None:
        if not isinstance(source, int) or not 0 <= source < self._sources:
            raise InputError(
                f"source {source!r} is none of this stream's, which are 0 to {self._sources - 1}: "
                f"pass one of them, or open the stream with more sources="
            )
        if source in self._ended_sources:
            raise InputError(f"source {source} has ended: push to another one, or end it later")


def _seconds(wait: float) -> float:
    """A time to wait that a lock can wait for."""
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
        raise QueryError(f"wait must be a number of seconds from 0 on, not {wait!r}")
    return min(float(wait), threading.TIMEOUT_MAX)
