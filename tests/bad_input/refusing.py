"""What is refused, and in which words: every message names what was given and what to do.

Questions without a meaning are `QueryError`s, data that does not fit is an `InputError`, and a
meaningful request that cannot be answered is an `UnsupportedError`. Nothing else may come out: a
traceback from NumPy, Arrow or Numba tells a user nothing about their question.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import Aggregate
from paneflow.windows import Window

ADVICE = re.compile(
    r"\b(must be|has to be|is needed|expected|call|cast|choose|compute|correct|cut|drop|fill|give|"
    r"leave|make|name|pass|rename|round|state|use)\b"
)
# What may be passed by a user who has no type checker.
Query: Any = pf.Query
COUNT = {"n": A.count()}
TABLE = pa.table({"t": [1, 2], "v": [1, 2], "s": ["a", "b"]})
COLUMNS = pa.table(
    {
        "t": [1, 2],
        "integer": [1, 2],
        "float": [1.0, 2.0],
        "boolean": [True, False],
        "text": ["a", "b"],
        "temporal": pa.array([1, 2], pa.timestamp("ms")),
    }
)


def shown(value: Any) -> str:
    """A test's id: functions by name, since their addresses differ between processes."""
    return getattr(value, "__name__", str(value))


def refused(error: type[pf.PaneflowError], ask: Callable[[], object], *given: str) -> str:
    """The message of an error, which names everything given and says what to do."""
    with pytest.raises(pf.PaneflowError) as caught:
        ask()
    message = str(caught.value)
    assert type(caught.value) is error, message
    for part in given:
        assert part in message, f"{part!r} is not in: {message}"
    assert ADVICE.search(message), f"no advice in: {message}"
    return message


def over(
    table: Any,
    *,
    engine: str = "auto",
    window: Window | None = None,
    aggregate: Aggregate | None = None,
    key: str | None = None,
) -> Callable[[], Any]:
    """Ask a small question of a table."""
    query = pf.Query(window or W.tumbling(5), {"n": aggregate or A.count()}, key=key, time="t")
    return lambda: query.over(table, engine=engine)
