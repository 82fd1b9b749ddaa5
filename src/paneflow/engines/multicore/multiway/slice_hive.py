"""WiML over slices: an event updates one slice, and windows are merged from slices when final.

The same shared object as in `window_hive`, with slices for winsets: all windows of a query share
them, and what an event costs does not depend on how much windows overlap. Slices are few, and the
thread that takes rows merges them into windows as one worker does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.lowering import Lowering
from paneflow.engines.multicore.contract import Rows
from paneflow.engines.multicore.multiway.hive import Hive, Winsets
from paneflow.engines.multicore.multiway.hive_front import HiveFront
from paneflow.engines.multicore.multiway.hive_units import Hives, HiveStrategy, number_of
from paneflow.engines.multicore.multiway.window_hive import order_refusal
from paneflow.engines.multicore.one_worker.by_slices import BySlices
from paneflow.engines.multicore.one_worker.kept_events import Read
from paneflow.engines.multicore.one_worker.slice_runs import Block, once
from paneflow.engines.multicore.ticks import END_OF_STREAM
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class SliceHives(Hives):
    """One hive of slices, and the windows that are made of them.

    Events behind the watermark may belong to slices that were given out long ago. They are few,
    and go past the hive.
    """

    def __init__(self, question: Question, query: Query, kinds: Kinds, writers: int) -> None:
        self._question = question
        places = {label: k for k, label in enumerate(sorted(query.windows))}
        windows = [w for w in query.windows.values() if isinstance(w, Sliding)]
        self._edges = sorted({edge for window in windows for edge in window.edges})
        self._hive = Hive(question, writers, self._edges)
        self._windows = BySlices(query, kinds, places)
        self._counted = Lowering(query.aggregates, kinds).counted

    def update(self, writer: int, work: Work, share: tuple[int, int]) -> int:
        events = work.events
        assert events is not None
        if work.behind:
            return 0
        return self._hive.update(writer, events.key, events.t, events.counted, events.inputs, share)

    def passes(self, writer: int, limit: int) -> None:
        start = max(limit - (limit - phase) % step for phase, step in self._edges)
        self._hive.passes(writer, number_of(start))

    def rows(self, works: list[Work]) -> list[Rows]:
        found = self._hive.next_winsets()
        if found is not None:
            self._windows.put(once(self._block(found)))
        every: list[Rows] = []
        for work in works:
            if work.behind:
                every += self._windows.advance(work.limit, work.arrived)
                events = work.events
                assert events is not None
                read = Read(events.key, events.t, events.moments, events.columns)
                self._windows.take_read(read, behind=True)
        last = works[-1]
        return [*every, *self._windows.advance(min(last.limit, END_OF_STREAM), last.arrived)]

    def _block(self, found: Winsets) -> Block:
        sets = dict(zip(((), *self._question.counted), found.fields, strict=True))
        counted = {columns: sets[columns] for columns in self._counted}
        partials = dict(zip(self._question.operators, found.partials, strict=True))
        return Block(found.key, found.number, counted, partials)


class SliceHive(HiveStrategy):
    """WiML, by slices."""

    name: ClassVar[str] = "slice_hive"
    front = HiveFront
    hives: ClassVar[type[Hives]] = SliceHives

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return super().refuses(query, kinds) or order_refusal(query)
