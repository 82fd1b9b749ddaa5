"""Two hundred values of every sort, nearly all of which are wrong wherever they are passed."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import io
import math
import pathlib
import re
import types
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W


class Plain:
    """An object that can do nothing."""


class Indexed:
    """Passes for a whole number."""

    def __index__(self) -> int:
        return 3


class Endless:
    """Has items without end, by number."""

    def __getitem__(self, at: int) -> int:
        return at


class Unhashable:
    """Equal to everything, and so in no set."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


class Color(enum.Enum):
    RED = 1


def _generator() -> Any:
    yield 1


def _fails(*arguments: Any) -> Any:
    raise ZeroDivisionError("on purpose")


NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 7, 100, 2**31, -(2**31), 2**53 + 1, 2**60, 2**61, 2**62, 2**63 - 1, 2**63,
    -(2**63), -(2**63) - 1, 2**64, 10**30, -(10**30), True, False, 0.0, -0.0, 0.5, 1.0, -1.5,
    1e18, 1e300, 5e-324, math.nan, math.inf, -math.inf, 1j, complex(1, 0), decimal.Decimal("1.5"),
    decimal.Decimal("NaN"), fractions.Fraction(1, 3), np.int8(-5), np.uint8(200), np.int64(3),
    np.uint64(2**64 - 1), np.float16(0.5), np.float32(0.25), np.float64(np.nan), np.longdouble(1),
    np.complex128(1j), np.bool_(True), np.str_("v"), np.bytes_(b"v"), np.datetime64("2026-01-01"),
    np.datetime64("NaT", "s"), np.timedelta64(5, "s"), np.timedelta64("NaT", "s"),
    np.timedelta64(1, "M"), np.void(b"ab"),
]  # fmt: skip

TEXTS: list[Any] = [
    "", " ", "v", "t", "s", "missing", "V", "v ", "\0", "\0time", "ü", "a" * 10_000, "5", "-5",
    "5 s", "5 seconds", "-5 s", "0 s", "1.5 s", "1 month", "1e3 s", "nan", "inf s",
    "99999999999999 days", "0.0000001 s", "5 5", "s 5", "NaT", "auto", "table", "oracle", "spark",
    "sba", "pane_line", "handshake", "final", "updates", "{}", "%s", "\n", "\ud800", "count",
    "window", "seq", "start", b"", b"v", bytearray(b"v"), memoryview(b"v"), re.compile("v"),
    pathlib.Path("v"), pathlib.PurePosixPath(""), io.StringIO("v"), io.BytesIO(b"v"),
]  # fmt: skip

TIMES: list[Any] = [
    dt.timedelta(0), dt.timedelta(seconds=5), dt.timedelta(days=-1), dt.timedelta.max,
    dt.timedelta(microseconds=1), dt.datetime(2026, 1, 1), dt.datetime.max, dt.date(2026, 1, 1),
    dt.time(1), dt.UTC, pd.Timestamp("2026-01-01"), pd.NaT, pd.NA, pd.Timedelta("5s"),
    pd.Timedelta("1ns"), pd.DateOffset(months=1), pd.Period("2026-01"), pd.Interval(0, 1),
]  # fmt: skip

COLLECTIONS: list[Any] = [
    [], (), {}, set(), frozenset(), [None], [1], ["v"], ["v", "v"], ["t"], [0.5], [[]], [[1]],
    [{}], ("v",), ("v", 1), (1, 2), {"v"}, {"v": 1}, {1: 2}, {None: None}, {"v": "v"},
    {"v": W.tumbling(5)}, {"v": A.count()}, [{"t": 1}], [{"t": None}], [{"t": "x", "v": 1}],
    [{"t": 1}, 5], [{1: 2}], [{"t": 1, "v": 2**70}], [{"t": 1, "v": {"a": 1}}],
    [{"t": 1, "v": object()}], [{}], [{}, {"t": 1}], range(0), range(5), iter([]), _generator(),
    zip([1], [2], strict=True), map(str, [1]), enumerate([1]), collections.OrderedDict(),
    collections.Counter("v"), collections.deque([1]), collections.defaultdict(list),
    types.SimpleNamespace(v=1), types.MappingProxyType({"v": 1}), slice(1, 2), Endless(),
    {"v": float("nan")}, [float("nan")], ["v", None],
]  # fmt: skip

ARRAYS: list[Any] = [
    np.array(5), np.array([]), np.array([1, 2]), np.array([[1.0]]), np.array(["v"]),
    np.array([None], object), np.array([True]), np.ma.masked, np.ma.array([1], mask=[True]),
    np.zeros(0, [("a", "i8")]), np.dtype("i8"), np.int64, np.ndarray, np, pa.array([1]),
    pa.array([]), pa.nulls(2), pa.chunked_array([[1], [2]]), pa.scalar(1), pa.scalar(None),
    pa.scalar("v"), pa.int64(), pa.string(), pa.list_(pa.int8()), pa.null(), pa.schema([]),
    pa.schema([("t", pa.int64())]), pa.field("v", pa.int64()), pa.table({}), pa.table({"t": [1]}),
    pa.table({"t": ["x"], "v": [1]}), pa.table({"t": [None], "v": [1]}),
    pa.table({"t": [1.5], "v": [1]}), pa.table([[1], [2]], names=["t", "t"]),
    pa.table({"t": [1], "v": [[1]], "s": ["x"]}), pa.table({"t": [1], "v": [{"a": 1}]}),
    pa.record_batch({"t": [1]}), pa.record_batch({"t": pa.array([2**64 - 1], pa.uint64())}),
    pa.py_buffer(b"v"), pa, pd.DataFrame(), pd.DataFrame({"t": [1j]}),
    pd.DataFrame({"t": [1], "v": [object()]}), pd.DataFrame({1: [1]}), pd.DataFrame({"t": [[1]]}),
    pd.DataFrame({"t": pd.Categorical(["a"])}), pd.DataFrame({"t": pd.array([1], "Int64")}),
    pd.DataFrame([[1, 2]], columns=["t", "t"]), pd.DataFrame({("a", "b"): [1]}), pd.Series([1]),
    pd.Index([1]), pd.DataFrame, pd.DataFrame({"t": pd.period_range("2026", periods=1)}),
    pd.DataFrame({"t": [dt.time(1)]}), pd.DataFrame({"t": pd.interval_range(0, 1)}),
    pd.DataFrame({"t": [1], "v": [1 + 2j], "s": ["x"]}), pl.DataFrame(), pl.DataFrame({"t": [1]}),
    pl.Series([1]), pl.col("v"), pl.Int64,
    pl.DataFrame({"t": [2**70], "v": [1]}, schema={"t": pl.Int128, "v": pl.Int64}),
    pl.DataFrame({"t": [1], "v": [2**100]}, schema={"t": pl.Int64, "v": pl.Int128}),
    pl.DataFrame({"t": [1], "v": [object()]}, schema={"t": pl.Int64, "v": pl.Object}),
    pl.DataFrame({"t": [[1]]}), pl.LazyFrame({"t": ["x"]}),
    pl.LazyFrame({"t": [1]}).select("nope"),
]  # fmt: skip

THINGS: list[Any] = [
    None, ..., NotImplemented, object(), Plain(), Plain, Indexed(), Unhashable(), Color.RED,
    Color, uuid.UUID(int=5), Exception("v"), Exception, ValueError, int, float, str, list, type,
    len, print, sum, min, lambda: None, lambda *a: a, lambda *a: None, lambda *a: 1, lambda a: a,
    lambda a, b: a, _fails, _generator, math.log, np.mean, np.add, re, pf, pf.Query, W, A,
    W.tumbling, W.tumbling(5), W.Sliding, W.Window, W.WindowClass.CF, W.duration("5 s"),
    W.duration(5), A.count, A.count(), A.max("v"), A.Aggregate, A.Laws(), pf.PaneflowError("v"),
    pf.Slices, pf.Plan,
]  # fmt: skip

WRONG: list[Any] = [*NUMBERS, *TEXTS, *TIMES, *COLLECTIONS, *ARRAYS, *THINGS]
