"""Finite tables in one process, by columns, on all cores.

An event's way: `slicing/events.py` puts events in total order; `slicing/bounds` finds each
window's range of positions; `from_events.py` folds events into slices; `windows.py` merges
slices into windows and lowers them; `rows.py` puts rows in order.
"""

from paneflow.engines.table.compacting import compact
from paneflow.engines.table.cutting import cut, layout_of, pieces
from paneflow.engines.table.engine import answer, check_laws, count, finish

__all__ = ["answer", "check_laws", "compact", "count", "cut", "finish", "layout_of", "pieces"]
