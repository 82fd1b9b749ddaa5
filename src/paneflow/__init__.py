"""paneflow: sliding-window aggregation, stated once, answered anywhere.

>>> import paneflow as pf
>>> from paneflow import aggregates as A, windows as W
>>> query = pf.Query(W.sliding(4, 2), {"total": A.sum("v")}, time="t")
>>> [row["total"] for row in query.over([{"t": 1, "v": 5}, {"t": 2, "v": 3}])]
[5, 8, 3]
"""

from paneflow import aggregates, windows
from paneflow._version import __version__ as __version__
from paneflow.errors import (
    InputError,
    ManyRowsWarning,
    PaneflowError,
    QueryError,
    UnsupportedError,
)
from paneflow.planning import Plan
from paneflow.query import Query
from paneflow.slicing.slices import Slices
from paneflow.warming import warm_up

__all__ = [
    "InputError",
    "ManyRowsWarning",
    "PaneflowError",
    "Plan",
    "Query",
    "QueryError",
    "Slices",
    "UnsupportedError",
    "aggregates",
    "warm_up",
    "windows",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
