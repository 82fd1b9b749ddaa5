"""Every merge algorithm, for tests that run over all of them.

A new algorithm is one more line in `SUBJECTS`; `test_fifo_windows.py` says so if it is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from paneflow.aggregates.operator import Operator
from paneflow.merging.contract import Fifo, Merger
from paneflow.merging.daba import DABA, DABA_LITE, Daba, DabaLite
from paneflow.merging.fiba import Fiba, FibaMerger
from paneflow.merging.flat_fat import FLAT_FAT, FlatFat
from paneflow.merging.flat_fit import FLAT_FIT, FlatFit
from paneflow.merging.linked import LinkedFifo
from paneflow.merging.pba import Pba, PbaMerger, open_window
from paneflow.merging.recalculate import RECALCULATE, Recalculate
from paneflow.merging.sba import SBA, Sba
from paneflow.merging.slick_deque import SlickDeque, slick_deque
from paneflow.merging.subtract import SUBTRACT, Subtract
from paneflow.merging.two_stacks import TWO_STACKS, TWO_STACKS_LITE, TwoStacks, TwoStacksLite


class Window(Protocol):
    """The streaming face, as tests use it."""

    def insert(self, *partial: Any) -> None: ...

    def evict(self) -> None: ...

    def query(self) -> tuple[Any, ...]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Subject:
    """One algorithm, its two faces, and the law it rests on.

    `window(operator, size)` opens a streaming window; `size` is a hint that tests keep small, so
    that windows have to grow.
    """

    merger: type[Merger]
    window: Callable[[Operator, int], Window]
    law: str | None = None

    @property
    def name(self) -> str:
        return self.merger.name


class _InOrder(Fiba):
    """A window by time, in which every partial comes at the next time."""

    _now = 0

    def insert(self, *partial: Any) -> None:
        super().insert(self._now, *partial)
        self._now += 1


def _pba(operator: Operator, size: int) -> Window:
    """PBA however small the window; what is not compiled never gets a second thread."""
    return Pba(operator, size) if operator.compiled else open_window(operator, size)


SUBJECTS: list[Subject] = [
    Subject(Recalculate, partial(Fifo, RECALCULATE)),
    Subject(TwoStacks, partial(Fifo, TWO_STACKS)),
    Subject(TwoStacksLite, partial(Fifo, TWO_STACKS_LITE)),
    Subject(Daba, partial(Fifo, DABA)),
    Subject(DabaLite, partial(Fifo, DABA_LITE)),
    Subject(FlatFit, partial(LinkedFifo, FLAT_FIT)),
    Subject(SlickDeque, slick_deque, law="selective or invertible"),
    Subject(Subtract, partial(Fifo, SUBTRACT), law="invertible"),
    Subject(Sba, partial(Fifo, SBA)),
    Subject(PbaMerger, _pba),
    Subject(FlatFat, partial(Fifo, FLAT_FAT)),
    Subject(FibaMerger, _InOrder),
]
