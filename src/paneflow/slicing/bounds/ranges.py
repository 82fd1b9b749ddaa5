"""The windows found in a part, as columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from paneflow.aggregates.operator import Array

Ends = tuple[int | None, int | None]
"""Keeps only the sliding windows that end after the first and not after the second."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """Window number `seq` of the part's `key`-th key holds the positions lo <= i < hi."""

    key: Array
    seq: Array
    lo: Array
    hi: Array

    @classmethod
    def room(cls, n: int) -> Ranges:
        """Unset ranges; memory that is never written is never taken."""
        return cls(np.empty(n, np.int32), *(np.empty(n, np.int64) for _ in range(3)))

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Key, seq, lo and hi, in the order in which kernels write them."""
        return self.key, self.seq, self.lo, self.hi

    def between(self, start: int, end: int) -> Ranges:
        """Only those from start to end."""
        return Ranges(*(column[start:end] for column in self.columns))

    def first(self, n: int) -> Ranges:
        """Only the first n."""
        return self.between(0, n)

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, eq=False)
class Found:
    """The ranges of several windows, one after the other, and where each window's ranges end."""

    ranges: Ranges
    ends: list[int]

    @property
    def spans(self) -> list[slice]:
        """The rows of each window."""
        return [slice(a, b) for a, b in itertools.pairwise([0, *self.ends])]

    @classmethod
    def joined(cls, several: list[Ranges]) -> Found:
        """The ranges of all windows, one after the other."""
        columns = zip(*(ranges.columns for ranges in several), strict=True)
        ends = itertools.accumulate(map(len, several))
        return cls(Ranges(*(np.concatenate(column) for column in columns)), list(ends))
