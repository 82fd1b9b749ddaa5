"""From slices to windows: algorithms that merge partials, one per file.

Every algorithm holds partials of one operator, and answers for windows over them (`contract.py`).
`MERGERS` names those that a query can ask for; docs/merging.md compares them.
"""

from paneflow.merging.contract import Merger
from paneflow.merging.daba import DabaLite
from paneflow.merging.fiba import FibaMerger
from paneflow.merging.flat_fat import FlatFat
from paneflow.merging.flat_fit import FlatFit
from paneflow.merging.pba import PbaMerger
from paneflow.merging.recalculate import Recalculate
from paneflow.merging.sba import Sba
from paneflow.merging.slick_deque import SlickDeque
from paneflow.merging.subtract import Subtract
from paneflow.merging.two_stacks import TwoStacksLite

MERGERS: dict[str, type[Merger]] = {
    "recalculate": Recalculate,
    "subtract": Subtract,
    "two_stacks": TwoStacksLite,
    "daba": DabaLite,
    "slick_deque": SlickDeque,
    "flat_fat": FlatFat,
    "flat_fit": FlatFit,
    "sba": Sba,
    "pba": PbaMerger,
    "fiba": FibaMerger,
}

__all__ = ["MERGERS", "Merger"]
