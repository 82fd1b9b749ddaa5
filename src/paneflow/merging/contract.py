"""What a merge algorithm is, for whole columns of windows at once.

A store of partials is given once; each `merge` answers for a batch of windows, so that several
windows of a query share one store. Windows come with `lo` and `hi` both never decreasing, as
every window kind gives them: what entered first leaves first.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from paneflow.aggregates.operator import Array, Operator, Partials


class Merger(Protocol):
    """Merged partials of ranges of slices."""

    name: ClassVar[str]

    def __init__(self, operator: Operator, partials: Partials) -> None: ...

    def merge(self, lo: Array, hi: Array) -> Partials:
        """The partials lo <= i < hi of each window, combined in order."""
        ...
