"""Whether what threads saw can be explained by doing one operation after another.

Herlihy and Wing call a history linearizable if its operations can be put into one order that the
sequential specification allows, and in which an operation comes before all that began after it had
ended. This is the search of Wing and Gong, "Testing and Verifying Concurrent Objects": it tries
every operation that may come next, and remembers the states from which it found no way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class State(Protocol):
    """A state of a sequential specification; states can be compared and hashed."""

    def after(self, operation: Any, result: Any) -> State | None: ...


@dataclass(frozen=True)
class Event:
    """An operation of a thread, what it returned, and what had ended before it began."""

    operation: Any
    result: Any
    after: tuple[int, ...]
    """For each thread, how many of its operations had ended."""


@dataclass(frozen=True)
class Timed:
    """Operations of a thread that take effect one after another, between two moments."""

    operations: tuple[tuple[Any, Any], ...]
    begun: int
    ended: int


def from_moments(threads: Sequence[Sequence[Timed]]) -> list[list[Event]]:
    """A history of operations that were timed by one clock."""
    return [
        [
            Event(
                operation,
                result,
                tuple(
                    sum(len(other.operations) for other in others if other.ended < timed.begun)
                    for others in threads
                ),
            )
            for timed in thread
            for operation, result in timed.operations
        ]
        for thread in threads
    ]


def is_linearizable(initial: State, threads: Sequence[Sequence[Event]]) -> bool:
    """Whether some order explains the history; each thread's operations keep theirs."""
    hopeless: set[tuple[tuple[int, ...], State]] = set()

    def explains(done: tuple[int, ...], state: State) -> bool:
        if all(count == len(thread) for count, thread in zip(done, threads, strict=True)):
            return True
        if (done, state) in hopeless:
            return False
        for k, thread in enumerate(threads):
            if done[k] == len(thread):
                continue
            event = thread[done[k]]
            before = (*event.after[:k], 0, *event.after[k + 1 :])
            if any(count < least for count, least in zip(done, before, strict=True)):
                continue
            follower = state.after(event.operation, event.result)
            if follower is not None and explains(
                (*done[:k], done[k] + 1, *done[k + 1 :]), follower
            ):
                return True
        hopeless.add((done, state))
        return False

    return explains((0,) * len(threads), initial)
