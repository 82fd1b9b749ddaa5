"""The cases of the comparison over tables, and what was measured in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.data import rows_of
from bench.measuring import Measured

OURS = "paneflow"
ROWS_AT_ONCE = 120_000_000
"""Larger results are computed one key range at a time, by every contestant."""


@dataclass(frozen=True)
class Case:
    """A number of events and keys, and how many windows contain each event."""

    events: int
    keys: int
    overlap: int

    @property
    def batches(self) -> int:
        """The number of key ranges that the table is split into."""
        return math.ceil(rows_of(self.events, self.keys, self.overlap) / ROWS_AT_ONCE)

    @property
    def size(self) -> str:
        """Events and keys in words."""
        return f"{self.events / 1e6:g} million events, {self.keys:,} keys"

    def __str__(self) -> str:
        return f"{self.size}, overlap {self.overlap:,}"


@dataclass(frozen=True)
class Figure:
    """One contestant in one case."""

    case: Case
    contestant: str
    measured: Measured


def by_case(figures: Sequence[Figure]) -> Iterator[tuple[Case, dict[str, Measured]]]:
    """The results of all contestants, case by case."""
    for case in dict.fromkeys(f.case for f in figures):
        yield case, {f.contestant: f.measured for f in figures if f.case == case}
