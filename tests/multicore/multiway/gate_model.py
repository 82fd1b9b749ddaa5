"""What a T-Gate does, one operation after another: the sequential specification.

A tuple is ready if no source that is present can insert anything before it in the total order. If
no source is present, every tuple is. `take` gives a reader some of the ready tuples that it has not
been given, first ones first, and nothing only if there are none.

A source that joins learns before which time it must not insert anything. That lies behind what any
reader has been given, and not further on than where the limit of readiness has been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Tuple = tuple[int, int, int]
NEVER = -(10**30)


@dataclass(frozen=True)
class Insert:
    """One tuple of a source."""

    source: int
    time: int


@dataclass(frozen=True)
class Advance:
    source: int
    time: int


@dataclass(frozen=True)
class Idle:
    source: int


@dataclass(frozen=True)
class Close:
    source: int


@dataclass(frozen=True)
class Join:
    source: int


@dataclass(frozen=True)
class Take:
    reader: int


Operation = Insert | Advance | Idle | Close | Join | Take


@dataclass(frozen=True)
class GateModel:
    """A state of the gate."""

    inserted: tuple[tuple[int, ...], ...]
    frontiers: tuple[int, ...]
    absent: tuple[bool, ...]
    closed: tuple[bool, ...]
    taken: tuple[tuple[int, ...], ...]
    """For each reader, how many tuples of each source it was given."""
    highest: int
    """The latest time that the limit has had."""

    @staticmethod
    def fresh(sources: int, readers: int) -> GateModel:
        none = (False,) * sources
        counts = ((0,) * sources,) * readers
        return GateModel(((),) * sources, (NEVER,) * sources, none, none, counts, NEVER)

    @property
    def limit(self) -> tuple[int, int]:
        """The last time and source up to which tuples are ready."""
        present = [
            (time, source)
            for source, time in enumerate(self.frontiers)
            if not (self.absent[source] or self.closed[source])
        ]
        last = [(times[-1], source) for source, times in enumerate(self.inserted) if times]
        return min(present) if present else max(last, default=(NEVER, 0))

    def ready(self, reader: int) -> list[Tuple]:
        """What the reader may be given, in order."""
        counts = self.taken[reader]
        return sorted(
            (time, source, position)
            for source, times in enumerate(self.inserted)
            for position, time in enumerate(times)
            if position >= counts[source] and (time, source) <= self.limit
        )

    def after(self, operation: Operation, result: Any) -> GateModel | None:
        """The state after an operation with this result; None if it cannot have it."""
        match operation:
            case Insert(source, time):
                if result is False:  # there was no room
                    return self
                inserted = _with(self.inserted, source, (*self.inserted[source], time))
                frontiers = _with(self.frontiers, source, time)
                state = replace(self, inserted=inserted, frontiers=frontiers)
            case Advance(source, time):
                raised = max(time, self.frontiers[source])
                state = replace(self, frontiers=_with(self.frontiers, source, raised))
            case Idle(source):
                state = replace(self, absent=_with(self.absent, source, True))
            case Close(source):
                state = replace(self, closed=_with(self.closed, source, True))
            case Join(source):
                floor = NEVER if result is None else result
                given = [
                    (times[count - 1], of)
                    for counts in self.taken
                    for of, (times, count) in enumerate(zip(self.inserted, counts, strict=True))
                    if count
                ]
                if max(given, default=(NEVER, 0)) > (floor, source):
                    return None
                if (
                    not self.frontiers[source]
                    <= floor
                    <= max(self.highest + 1, self.frontiers[source])
                ):
                    return None
                frontiers = _with(self.frontiers, source, floor)
                state = replace(self, frontiers=frontiers, absent=_with(self.absent, source, False))
            case Take(reader):
                ready = self.ready(reader)
                if list(result) != ready[: len(result)] or (ready and not result):
                    return None
                counts = list(self.taken[reader])
                for _, source, _ in result:
                    counts[source] += 1
                state = replace(self, taken=_with(self.taken, reader, tuple(counts)))
        return replace(state, highest=max(self.highest, state.limit[0]))


def _with(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
