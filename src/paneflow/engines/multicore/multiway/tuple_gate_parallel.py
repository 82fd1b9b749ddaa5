"""TuML-MC: sources are merged by a T-Gate, and several threads update windows, each of its keys.

Section 5.4 and algorithm 3 of Gulisano et al., "Efficient data streaming multiway aggregation
through concurrent algorithmic designs and new abstract data types". Pushing threads do *Add* and
*S-Merge*. An update thread sees all events in order, and updates the windows of its own keys in
W-Hive, so functions may depend on the order of events. The thread that takes rows does *Output*.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.engines.multicore.multiway.designs import GateFront
from paneflow.engines.multicore.multiway.hive_units import Hives, HiveStrategy
from paneflow.engines.multicore.multiway.window_hive import WindowHives


class TupleGateParallel(HiveStrategy):
    """TuML-MC."""

    name: ClassVar[str] = "tuple_gate_parallel"
    front = GateFront
    hives: ClassVar[type[Hives]] = WindowHives
    most_windows: ClassVar[int] = 1 << 16
