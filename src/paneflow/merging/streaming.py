"""Which streaming windows an algorithm's name stands for."""

from __future__ import annotations

from paneflow.aggregates.operator import Operator
from paneflow.merging.contract import Algorithm
from paneflow.merging.daba import DABA_LITE
from paneflow.merging.flat_fat import FLAT_FAT
from paneflow.merging.flat_fit import FLAT_FIT
from paneflow.merging.keyed.fifos import KeyedFifos, KeyedWindows
from paneflow.merging.keyed.trees import KeyedTrees
from paneflow.merging.sba import SBA
from paneflow.merging.slick_deque import SLICK_DEQUE, SLICK_DEQUE_INV, selects
from paneflow.merging.subtract import SUBTRACT
from paneflow.merging.two_stacks import TWO_STACKS_LITE

FIFOS: dict[str, Algorithm] = {
    "subtract": SUBTRACT,
    "two_stacks": TWO_STACKS_LITE,
    "daba": DABA_LITE,
    "flat_fat": FLAT_FAT,
    "flat_fit": FLAT_FIT,
    "sba": SBA,
    # A second thread for each of many windows would do nothing but wait.
    "pba": SBA,
}


def keyed_windows(name: str, operator: Operator, size: int) -> KeyedWindows:
    """Windows of many keys by the algorithm of a name, which hold about so many partials each."""
    if name == "fiba":
        return KeyedTrees(operator)
    if name == "slick_deque":
        return KeyedFifos(SLICK_DEQUE if selects(operator) else SLICK_DEQUE_INV, operator, size)
    return KeyedFifos(FIFOS[name], operator, size)
