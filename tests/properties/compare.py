"""When two results are the same: to the bit, but for what rests on float sums.

Float sums may differ in the last bits between decompositions (docs/semantics.md). What is built on
them is compared with a tolerance; everything else must be equal.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

import paneflow as pf

ROUNDED = {
    "var",
    "std",
    "var_pop",
    "std_pop",
    "geometric_mean",
    "product",
    "linear_regression",
    "define",
}
SOLVED = {"moment_sketch"}


def assert_same_rows(query: pf.Query, got: pa.Table, expected: pa.Table) -> None:
    """The same rows in the same order, in the same types."""
    assert got.schema.equals(expected.schema), f"{got.schema}\n!=\n{expected.schema}"
    assert got.num_rows == expected.num_rows, f"{got.num_rows} rows, expected {expected.num_rows}"
    for name in got.column_names:
        aggregate = query.aggregates.get(name)
        kind = aggregate.name if aggregate is not None else ""
        tolerance = 1e-9 if kind in ROUNDED else 1e-3 if kind in SOLVED else 0.0
        if kind in ("sum", "mean") and not getattr(aggregate, "exact", False):
            tolerance = 1e-12
        pairs = zip(got[name].to_pylist(), expected[name].to_pylist(), strict=True)
        for row, (a, b) in enumerate(pairs):
            assert alike(a, b, tolerance), (
                f"{name} ({aggregate}) in row {row}: {a!r}, expected {b!r}\n"
                f"{expected.slice(row, 1).to_pylist()}"
            )


def alike(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if tolerance == 0.0:
            return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b and type(a) is type(b))
