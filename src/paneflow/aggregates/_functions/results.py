"""What users' functions return, as Arrow arrays of the right type; no value is changed to fit.

Arrow itself turns 2.5 into 2 where integers are wanted, turns what float32 cannot hold into an
infinity, and drops fields that a struct does not have. Here these are errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paneflow.errors import InputError

REFUSALS = (pa.ArrowException, OverflowError, TypeError, ValueError)


def fitted(what: str, results: Sequence[Any], type_: pa.DataType, advice: str) -> pa.Array:
    """Results as an array; an error that names the first of them that does not fit.

    >>> fitted("apply(f, x)", [1, None, 2.0], pa.int64(), "").to_pylist()
    [1, None, 2]
    """
    plain = [plain_value(result) for result in results]
    try:
        made = pa.array(plain, type_)
    except REFUSALS as error:
        wrong = next((r for r in plain if not _taken(r, type_)), None)
        raise InputError(_message(what, wrong, type_, advice)) from error
    if _cuts(type_):
        for result in plain:
            if _cut(result, type_):
                raise InputError(_message(what, result, type_, advice))
    return made


def plain_value(value: Any) -> Any:
    """A NumPy scalar as a Python one; times stay as they are, since their unit would be lost."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value if value.dtype.kind in "mM" else value.item()
    return value


def _message(what: str, wrong: Any, type_: pa.DataType, advice: str) -> str:
    shown = repr(wrong)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
    return f"{what} returned {shown}, which does not fit into {type_}: {advice}"


def _taken(result: Any, type_: pa.DataType) -> bool:
    try:
        pa.array([result], type_)
    except REFUSALS:
        return False
    return True


def _whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))


def _cuts(type_: pa.DataType) -> bool:
    """Whether Arrow would change values to make them fit into a type."""
    if _whole(type_) or pa.types.is_float32(type_) or pa.types.is_float16(type_):
        return True
    return pa.types.is_struct(type_) or any(_cuts(inner) for inner in _inner(type_))


def _inner(type_: pa.DataType) -> list[pa.DataType]:
    return [type_.field(k).type for k in range(type_.num_fields)]


def _cut(value: Any, type_: pa.DataType) -> bool:
    """Whether Arrow would lose something of a value."""
    if value is None:
        return False
    if _whole(type_):
        return isinstance(value, float | np.floating) and not float(value).is_integer()
    if pa.types.is_float32(type_) or pa.types.is_float16(type_):
        largest = float(np.finfo(type_.to_pandas_dtype()).max)
        return not isinstance(value, np.generic) and math.isfinite(value) and abs(value) > largest
    if pa.types.is_struct(type_):
        if not isinstance(value, dict):
            return False
        types = {type_.field(k).name: type_.field(k).type for k in range(type_.num_fields)}
        return not value.keys() <= types.keys() or any(_cut(v, types[k]) for k, v in value.items())
    if pa.types.is_nested(type_) and not pa.types.is_map(type_) and not pa.types.is_union(type_):
        return any(_cut(item, type_.value_type) for item in value)
    return False
