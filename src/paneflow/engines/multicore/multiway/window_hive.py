"""WiML: windows are updated as events arrive, in whatever order, and given out when final.

Section 5.7 and algorithm 6 of Gulisano et al., "Efficient data streaming multiway aggregation
through concurrent algorithmic designs and new abstract data types". An event updates every window
that it is in, in W-Hive; nothing is put into one order, so aggregates that depend on the order of
events are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.contract import Rows
from paneflow.engines.multicore.multiway.hive_front import HiveFront
from paneflow.engines.multicore.multiway.hive_units import (
    Hives,
    HiveStrategy,
    hive_of,
    labels,
    number_of,
)
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question
from paneflow.slicing.ends import first_open
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class WindowHives(Hives):
    """A hive for each label."""

    def __init__(self, question: Question, query: Query, kinds: Kinds, writers: int) -> None:
        self._question = question
        self._windows: list[Sliding] = [w for _, w in sorted(query.windows.items())]  # type: ignore[misc]
        self._hives = [hive_of(question, window, writers) for window in self._windows]

    def update(self, writer: int, work: Work, share: tuple[int, int]) -> int:
        events = work.events
        assert events is not None
        updated = 0
        for window, hive in zip(self._windows, self._hives, strict=True):
            least = number_of(first_open(window, work.limit)) if work.behind else BEFORE_ALL
            updated += hive.update(
                writer, events.key, events.t, events.counted, events.inputs, share, least
            )
        return updated

    def passes(self, writer: int, limit: int) -> None:
        for window, hive in zip(self._windows, self._hives, strict=True):
            hive.passes(writer, number_of(first_open(window, limit)))

    def rows(self, works: list[Work]) -> list[Rows]:
        last = works[-1]
        every = []
        for label, (window, hive) in enumerate(zip(self._windows, self._hives, strict=True)):
            found = hive.next_winsets()
            if found is None:
                continue
            results = self._question.lower(found.fields[0], found.fields[1:], found.partials)
            every.append(
                Rows(
                    labels(label, len(found)),
                    found.key,
                    (found.number - window.offset.value) // window.slide.value,
                    found.number,
                    found.number + window.range.value,
                    results,
                    last.arrived,
                    BEFORE_ALL,
                )
            )
        return every


def order_refusal(query: Query) -> str | None:
    """Why windows cannot be updated in any order; None if they can."""
    for name, aggregate in query.aggregates.items():
        if aggregate.laws.order_sensitive:
            return (
                f"aggregate {name!r} ({aggregate}) depends on the order of events, and windows are "
                f"updated as events arrive, not in order: use 'tuple_gate_parallel', or another "
                f"strategy"
            )
    return None


class WindowHive(HiveStrategy):
    """WiML."""

    name: ClassVar[str] = "window_hive"
    front = HiveFront
    hives: ClassVar[type[Hives]] = WindowHives
    most_windows: ClassVar[int] = 1 << 16

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return super().refuses(query, kinds) or order_refusal(query)
