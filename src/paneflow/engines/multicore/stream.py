"""A live stream: push events, read rows; threads in this process do the rest.

The rows are those that `query.over` returns for all events pushed, in the same order, whatever the
strategy, the number of workers, and the batches in which events were pushed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow._display import table_html
from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.values import kind_of
from paneflow.engines.live.stream_options import FINAL, StreamOptions, check_added
from paneflow.engines.multicore.choosing import StreamPlan, choose, without_partial
from paneflow.engines.multicore.contract import Pauses, Strategy
from paneflow.engines.multicore.inputs.pulling import Pulled, Taker
from paneflow.engines.multicore.inputs.reading import Origin, open_input
from paneflow.engines.multicore.intake.admission import Admission
from paneflow.engines.multicore.pump.metrics import StreamMetrics, no_metrics
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.pump.pipeline import Setup
from paneflow.engines.multicore.pump.pump import Pump
from paneflow.engines.multicore.threads.forks import forks
from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from paneflow.errors import InputError, PaneflowError, QueryError, UnsupportedError

if TYPE_CHECKING:
    from paneflow.query import Query


class Stream:
    """An open stream of events; `query.open` makes one.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
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
        merge: str = "auto",
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
        self._merge = merge
        self._options = options or StreamOptions()
        if self._options.updates:
            check_added([*query.key, *query.aggregates], [FINAL])
        self._ended_sources: set[int] = set()
        self._pulled = Pulled()
        self._failure: PaneflowError | None = None
        """What an input has failed with before there was anything to compute."""
        self._admission = Admission(self._query, self._options)
        self._timeless = self._ahead = 0
        self._state = "open"
        self._lock = threading.RLock()
        self._begun = Waiters(self._lock)
        """Readers that wait for the first events, or for the end of a stream without any."""
        self._process = os.getpid()
        self._forks = forks.count
        self._core: Pump | None = None
        self._plan = self._likely_plan()

    @property
    def plan(self) -> StreamPlan:
        """How the stream is answered, and why; final once the first events have arrived."""
        return self._plan

    def push(self, batch: Any, source: int = 0) -> None:
        """Push events; waits while the stream is behind.

        Args:
            batch: Events, as a pyarrow, pandas or polars table or a list of dicts. A batch that
                does not fit the query is refused as a whole.
            source: The source the events come from, counted from 0.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open(sources=2) as stream:
            ...     stream.push([{"t": 1, "v": 5}], source=1)
            ...     stream.metrics().pushed
            1
        """
        self._check_open("push")
        self._check_source(source)
        self._push(batch, source)

    def _push(self, batch: Any, source: int, patient: bool = False) -> None:
        admitted = self._admission.admit(batch, source)
        if admitted.batch is not None and admitted.batch.num_rows:
            core = self._core if self._core is not None else self._running()
            core.pushing.push(source, admitted, patient)
        else:
            self._timeless += admitted.timeless
            self._ahead += admitted.ahead

    def pull(self, origin: Origin, source: int = 0) -> None:
        """Read an input to its end, in a thread of its own, as the events of a source.

        The source ends with its input. `finish` may be called while inputs are open: `results` then
        returns rows until all inputs have ended. An input that fails ends the stream; in a stream
        opened with `idle` its source falls silent instead.

        Args:
            origin: An iterator of batches (whatever `push` takes), an Arrow stream, a connected
                socket or an open binary file that carries an Arrow IPC stream, or the path of a
                Parquet, Arrow, ORC, CSV or JSON lines file.
            source: The source the events come from, counted from 0.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open(sources=2) as stream:
            ...     stream.pull(iter([[{"t": 1, "v": 5}], [{"t": 8, "v": 1}]]), source=0)
            ...     stream.pull([{"t": 3, "v": 6}], source=1)
            ...     stream.finish()
            ...     [peak for rows in stream.results() for peak in rows["peak"].to_pylist()]
            [6, 1]
        """
        self._check_open("pull")
        opened = open_input(origin)
        with put_off, self._lock:
            self._check_open("pull")
            self._check_source(source)
            taker = Taker(
                weakref.WeakMethod(self._push_pulled),
                weakref.WeakMethod(self._end_pulled),
                weakref.WeakMethod(self._fail_pulled),
            )
            self._pulled.start(source, opened, taker)

    def _push_pulled(self, batch: Any, source: int) -> None:
        self._push(batch, source, patient=True)

    def _end_pulled(self, source: int) -> None:
        with self._lock:
            self._pulled.open.discard(source)
            self._ended_sources.add(source)
            if self._core is not None:
                self._core.end_source(source)
            self._finish_after_inputs()

    def _fail_pulled(self, source: int, error: BaseException) -> None:
        with self._lock:
            self._pulled.open.discard(source)
            if self._options.idle is not None:
                self._finish_after_inputs()
                return
            self._failure = PaneflowError(
                f"the input of source {source} failed with {type(error).__name__}: {error}; rows "
                f"that were final before are kept (with idle=, the stream would go on without it)"
            )
            self._failure.__cause__ = error
            if self._core is not None:
                self._core.fail(self._failure)
            self._begun.wake()

    def end_source(self, source: int) -> None:
        """Declare that a source has ended, so that it no longer holds back the watermark.

        Args:
            source: The source, counted from 0.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open(sources=2) as stream:
            ...     stream.push([{"t": 1, "v": 5}, {"t": 9, "v": 2}], source=0)
            ...     stream.end_source(1)
            ...     next(stream.results(wait=60))["peak"].to_pylist()
            [5]
        """
        self._check_open("end_source")
        self._check_source(source)
        with put_off, self._lock:
            self._ended_sources.add(source)
            if self._core is not None:
                self._core.end_source(source)

    def results(self, wait: float = 0.0) -> Iterator[pa.Table]:
        """The rows that have become final and have not been read yet.

        Args:
            wait: How many seconds to wait for more rows before the iterator ends. After `finish`,
                it ends when all rows have been read.

        Returns:
            An iterator over pyarrow tables, whose rows are ordered by (end, window, seq, key).

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open() as stream:
            ...     stream.push([{"t": 1, "v": 5}, {"t": 9, "v": 2}])
            ...     next(stream.results(wait=60))["peak"].to_pylist()
            [5]
        """
        self._check_process()
        as_given = self._admission.as_given
        return self._read(lambda core: core.results, _seconds(wait), as_given)

    def late(self, wait: float = 0.0) -> Iterator[pa.Table]:
        """The events that arrived too late and have not been read yet.

        For streams that were opened with `late=True`. Events have all the columns they were pushed
        with; if batches differ in their columns, so do the tables.

        Args:
            wait: How many seconds to wait for more events before the iterator ends. After `finish`,
                it ends when all of them have been read.

        Returns:
            An iterator over pyarrow tables, in the order in which the events arrived.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open(late=True) as stream:
            ...     stream.push([{"t": 1, "v": 5}, {"t": 9, "v": 2}])
            ...     stream.push([{"t": 3, "v": 8}])
            ...     stream.finish()
            ...     [events.to_pylist() for events in stream.late()]
            [[{'t': 3, 'v': 8}]]
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
        """Declare that no more events will come: all windows close, and `results` returns the rest.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open() as stream:
            ...     stream.push([{"t": 1, "v": 5}])
            ...     stream.finish()
            ...     [rows["peak"].to_pylist() for rows in stream.results()]
            [[5]]
        """
        self._check_process()
        if self._state == "finished":
            return
        self._check_open("finish")
        with put_off, self._lock:
            self._state = "finished"
            self._end_sources(set(range(self._sources)) - self._pulled.open)
            if self._core is not None:
                self._core.await_finish()
            self._finish_after_inputs()

    def _finish_after_inputs(self) -> None:
        """Close all windows if the stream is finished and no input is open."""
        if self._state == "finished" and not self._pulled.open:
            self._end_sources(set(range(self._sources)))
            self._begun.wake()
            if self._core is not None:
                self._core.finish()

    def _end_sources(self, sources: set[int]) -> None:
        for source in sources - self._ended_sources:
            self._ended_sources.add(source)
            if self._core is not None:
                self._core.end_source(source)

    def close(self) -> None:
        """End the threads; rows that are already final can still be read.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> stream = query.open()
            >>> stream.close()
            >>> stream
            Stream(state=closed, strategy=single, workers=1, sources=1)
        """
        self._check_process()
        with put_off, self._lock:
            self._state = "closed"
            self._pulled.close()
            self._begun.wake()
            if self._core is not None:
                self._core.close()
        if self._core is not None:
            self._core.await_end()

    def metrics(self) -> StreamMetrics:
        """What the stream has done so far, as a whole and by processing unit.

        Returns:
            The numbers as of now.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> with query.open() as stream:
            ...     stream.push([{"t": 1, "v": 5}, {"t": 9, "v": 2}])
            ...     stream.metrics().pushed
            2
        """
        self._check_process()
        if self._core is None:
            metrics = no_metrics(self._sources, self._timeless, self._ahead)
        else:
            metrics = self._core.metrics(self._timeless, self._ahead)
        failed = dict(self._pulled.errors)
        sources = (replace(each, error=failed.get(each.source)) for each in metrics.sources)
        return replace(metrics, sources=tuple(sources)) if failed else metrics

    def __repr__(self) -> str:
        shown = (f"{name}={', '.join(items)}" for name, items in self._parts().items())
        return f"Stream({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return table_html("Stream", self._parts())

    def _parts(self) -> dict[str, list[str]]:
        """What a stream shows of itself: its state, and how it runs."""
        return {
            "state": [self._state],
            "strategy": [self._plan.strategy],
            "workers": [str(self._workers)],
            "sources": [str(self._sources)],
        }

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._forks != forks.count:  # the threads stayed with the parent
            return
        try:
            if error is not None:
                self._abandon()
            self.close()
        except BaseException:  # an interrupt: leave at once
            self._abandon()
            raise

    def _abandon(self) -> None:
        self._pulled.close()
        if self._core is not None:
            self._core.abandon()

    def _running(self) -> Pump:
        """The inside of the stream, made with the first events, when the types are known."""
        schema = self._admission.schema
        assert schema is not None
        kinds = {n: kind_of(type_, n) for n, type_ in self._query.types(schema).items()}
        with put_off, self._lock:
            if self._state != "finished":  # then only inputs that are still open push
                self._check_open("push")
            strategy, plan = self._chosen(kinds)
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
                        self._merge,
                        self._options,
                    )
                )
                # The thread holds the inside and not the stream, so a dropped stream ends it.
                weakref.finalize(self, core.abandon)
                for source in self._ended_sources:
                    core.end_source(source)
                self._core = core
                self._begun.wake()
                if self._state == "finished":
                    core.await_finish()
            return self._core

    def _chosen(self, kinds: Kinds) -> tuple[type[Strategy], StreamPlan]:
        updates = self._options.updates
        return choose(self._query, kinds, self._workers, self._strategy, updates, self._merge)

    def _likely_plan(self) -> StreamPlan:
        """The plan as long as types are unknown: refused if neither floats nor integers will do."""
        columns = [c for a in self._query.aggregates.values() for c in a.columns]
        try:
            return self._chosen({c: kind_of(pa.float64(), c) for c in columns})[1]
        except UnsupportedError:
            return self._chosen({c: kind_of(pa.int64(), c) for c in columns})[1]

    def _await_begin(self, wait: float) -> None:
        """Wait for the first events: at most this many seconds, or for all inputs to end."""
        with put_off, self._lock:
            self._check_inputs()
            if self._state == "finished":
                wait = threading.TIMEOUT_MAX if self._pulled.open else 0.0
            if self._core is not None or self._state == "closed" or wait <= 0:
                return
            waiter = self._begun.enrol()
        self._begun.sleep(waiter, wait)
        self._check_inputs()

    def _check_inputs(self) -> None:
        """Raise what an input has failed with, if there is nothing else to raise it."""
        if self._core is None and self._failure is not None:
            raise self._failure

    def _check_process(self) -> None:
        if self._forks != forks.count:
            raise PaneflowError(
                f"this stream was opened in process {self._process}, and its threads stayed "
                f"there when this process was forked: open another one here with query.open()"
            )

    def _check_open(self, what: str) -> None:
        if self._forks != forks.count:
            self._check_process()
        if self._core is not None:
            self._core.check()
        self._check_inputs()
        if self._state != "open":
            raise PaneflowError(
                f"{what} on a stream that is {self._state}: open another one with query.open()"
            )

    def _check_source(self, source: int) -> None:
        if not isinstance(source, int) or not 0 <= source < self._sources:
            raise InputError(
                f"this stream has no source {source!r}, only 0 to {self._sources - 1}: pass one of "
                f"them, or open the stream with more sources="
            )
        if source in self._pulled.sources:
            raise InputError(
                f"source {source} is pulled from an input: give what else there is a source of its "
                f"own"
            )
        if source in self._ended_sources:
            raise InputError(f"source {source} has ended: push to another one, or end it later")


def _seconds(wait: float) -> float:
    """Check a time to wait, and limit it to what a lock can wait."""
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
        raise QueryError(f"wait must be a number of seconds, 0 or more, not {wait!r}")
    return min(float(wait), threading.TIMEOUT_MAX)
