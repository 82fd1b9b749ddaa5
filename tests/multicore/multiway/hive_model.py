"""W-Hive as its definition says: a dictionary of windows, and what each writer has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL

Window = tuple[int, int]
"""When the winset begins, and the key."""


class HiveModel:
    """Sums of values and counts of events, window by window."""

    def __init__(self, writers: int) -> None:
        self._windows: dict[Window, tuple[int, int]] = {}
        self._passed = [BEFORE_ALL] * writers

    def update(self, winsets: Iterable[int], key: int, value: int) -> None:
        """Add an event to the winsets that begin at some times."""
        for number in winsets:
            n, total = self._windows.get((number, key), (0, 0))
            self._windows[number, key] = n + 1, total + value

    def passes(self, writer: int, number: int) -> None:
        """The writer will update nothing before a time."""
        self._passed[writer] = max(self._passed[writer], number)

    def next_winsets(self, most: int = AFTER_ALL) -> dict[Window, tuple[int, int]]:
        """The earliest winsets that all writers have passed, at most so many."""
        least = min(self._passed)
        final = sorted({number for number, _ in self._windows if number < least})[:most]
        found = {window: held for window, held in self._windows.items() if window[0] in final}
        for window in found:
            del self._windows[window]
        return found


class Update(NamedTuple):
    """A writer adds an event of some key to the winsets of a time."""

    writer: int
    time: int
    key: int


class Pass(NamedTuple):
    """A writer will update no winset any more that begins before a time."""

    writer: int
    number: int


class Next(NamedTuple):
    """The output takes the earliest winsets that are final, at most so many."""

    most: int


Operation = Update | Pass | Next
Found = tuple[tuple[int, int, int], ...]
"""Winset, key and count of the windows that were taken, in order."""


@dataclass(frozen=True)
class HiveState:
    """The sequential specification: how many events each open window has."""

    windows: frozenset[tuple[Window, int]]
    passed: tuple[int, ...]
    winsets: Callable[[int], tuple[int, ...]]
    """When the winsets of a time begin."""

    @classmethod
    def fresh(cls, writers: int, winsets: Callable[[int], tuple[int, ...]]) -> HiveState:
        return cls(frozenset(), (BEFORE_ALL,) * writers, winsets)

    def after(self, operation: Operation, result: Found | None) -> HiveState | None:
        """The state after an operation; None if it cannot have had the result."""
        held = dict(self.windows)
        match operation:
            case Update(_, time, key):
                for number in self.winsets(time):
                    held[number, key] = held.get((number, key), 0) + 1
                return replace(self, windows=frozenset(held.items()))
            case Pass(writer, number):
                passed = list(self.passed)
                passed[writer] = max(passed[writer], number)
                return replace(self, passed=tuple(passed))
            case Next(most):
                final = sorted({n for n, _ in held if n < min(self.passed)})[:most]
                found = tuple(sorted((n, key, held[n, key]) for n, key in held if n in final))
                if found != result:
                    return None
                rest = {window: count for window, count in held.items() if window[0] not in final}
                return replace(self, windows=frozenset(rest.items()))
