"""The cases of the comparison over tables, and what was measured in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.data import rows_of
from bench.measuring import Measured

OURS = "paneflow"
ROWS_AT_ONCE = 120_000_000
"""Of more rows than this, the result is asked for one key range at a time, by everybody."""


@dataclass(frozen=True)
class Case:
    """So many events of so many keys, in windows that overlap so many times."""

    events: int
    keys: int
    overlap: int

    @property
    def batches(self) -> int:
        """Into how many key ranges the table is dealt."""
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
    """What all contestants reached in each case."""
    for case in dict.fromkeys(f.case for f in figures):
        yield case, {f.contestant: f.measured for f in figures if f.case == case}
