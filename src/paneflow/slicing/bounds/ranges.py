"""The windows found in a part, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paneflow.aggregates.operator import Array


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

    @classmethod
    def joined(cls, several: list[Ranges]) -> Ranges:
        """Ranges of several windows, one behind the other."""
        if len(several) == 1:
            return several[0]
        return cls(
            *(np.concatenate(c) for c in zip(*(vars(r).values() for r in several), strict=True))
        )

    def first(self, n: int) -> Ranges:
        """Only the first n."""
        return Ranges(self.key[:n], self.seq[:n], self.lo[:n], self.hi[:n])

    def __len__(self) -> int:
        return len(self.key)
