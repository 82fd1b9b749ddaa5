"""The types of users' compiled functions, as Numba infers them.

Results on samples cannot tell what type other results have, but compiled code has only one. The
type of a partial is wide enough for the identity, for what lift returns, and for what combine
returns for such partials, which is asked until nothing changes. If one branch returns an integer
and another a float, the type is float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from numba.core import types

from paneflow.aggregates._functions.checking import Unchecked
from paneflow.aggregates._inferring.samples import Dtype
from paneflow.aggregates.kernels import compile_loop
from paneflow.aggregates.values import Kind

SCALARS: dict[Any, Dtype] = {
    types.boolean: "bool",
    types.int64: "int64",
    types.float64: "float64",
}
NUMBA = {dtype: kind for kind, dtype in SCALARS.items()}
ARROW = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
WIDTH: list[Dtype] = ["bool", "int64", "float64"]
PARTIAL = """
    def lift_one({values}):
        return user_lift({values})


    @compiled
    def combine_two(p, q):
        return user_combine(p, q)
    """
LOWER = """
    def lower_one(p):
        return user_lower(p)
    """


class Alone(NamedTuple):
    """Compiled functions of the user's, without a loop around them."""

    lift: Any
    combine: Any


def alone(lift: Callable[..., Any], combine: Callable[..., Any], columns: int) -> Alone:
    """lift and combine; nothing is compiled yet."""
    functions = {"user_lift": lift, "user_combine": combine}
    body = PARTIAL.format(values=", ".join(f"v{k}" for k in range(columns)))
    names = ("lift_one", "combine_two")
    return Alone(*(compile_loop("types", functions, body, name, checked=True) for name in names))


def lower_alone(lower: Callable[..., Any]) -> Any:
    """lower; nothing is compiled yet."""
    return compile_loop("types", {"user_lower": lower}, LOWER, "lower_one", checked=True)


def partial_types(user: Alone, identity: Any, kinds: Sequence[Kind]) -> tuple[Dtype, ...]:
    """The types of a partial's components; raises the compiler's error if there are none."""
    bare = not isinstance(identity, tuple)
    found = tuple(_of_value(v) for v in ((identity,) if bare else identity))
    lifted = _result(user.lift, tuple(map(_of_kind, kinds)))
    found = _joined(found, _components(lifted, bare))
    while True:
        partial = _numba(found, bare)
        wider = _joined(found, _components(_result(user.combine, (partial, partial)), bare))
        if wider == found:
            return found
        found = wider


def result_type(
    lower: Any, partial: tuple[Dtype, ...], bare: bool
) -> tuple[Dtype | None, pa.DataType | None]:
    """The type of lower's results, as a number and in Arrow; None where only values tell.

    Raises the compiler's error if lower cannot be compiled.
    """
    found = _result(lower, (_numba(partial, bare),))
    if isinstance(found, types.Optional):
        found = found.type
    if found in SCALARS:
        return SCALARS[found], ARROW[SCALARS[found]]
    if found == types.unicode_type:
        return None, pa.string()
    parts = [found.dtype] if isinstance(found, types.List) else found
    if isinstance(found, types.List | types.BaseTuple) and not isinstance(found, types.NamedTuple):
        cells = [types.unliteral(part) for part in parts]
        if cells and all(cell in SCALARS for cell in cells):
            return None, pa.list_(ARROW[max((SCALARS[c] for c in cells), key=WIDTH.index)])
    return None, None


def _result(run: Any, arguments: tuple[Any, ...]) -> Any:
    run.compile(arguments)
    return types.unliteral(run.overloads[arguments].signature.return_type)


def _of_kind(kind: Kind) -> Any:
    if kind is Kind.BOOLEAN:
        return types.boolean
    return types.float64 if kind is Kind.FLOAT else types.int64


def _of_value(value: Any) -> Dtype:
    plain: dict[type, Dtype] = {bool: "bool", int: "int64", float: "float64"}
    kind = type(value.item() if hasattr(value, "item") else value)
    if kind not in plain or (kind is int and not -(2**63) <= value < 2**63):
        raise Unchecked(f"the identity holds {value!r}, which is no number of 64 bits")
    return plain[kind]


def _components(found: Any, bare: bool) -> tuple[Dtype, ...]:
    parts: Any = found if isinstance(found, types.BaseTuple) else ()
    cells = (found,) if bare else tuple(parts)
    several = [types.unliteral(cell) for cell in cells]
    if not several or not all(cell in SCALARS for cell in several):
        raise Unchecked(f"its partials are not numbers, but {found}")
    return tuple(SCALARS[cell] for cell in several)


def _joined(a: tuple[Dtype, ...], b: tuple[Dtype, ...]) -> tuple[Dtype, ...]:
    if len(a) != len(b):
        raise Unchecked(f"its partials have {len(a)} or {len(b)} values")
    return tuple(max(pair, key=WIDTH.index) for pair in zip(a, b, strict=True))


def _numba(partial: tuple[Dtype, ...], bare: bool) -> Any:
    cells = [NUMBA[dtype] for dtype in partial]
    return cells[0] if bare else types.Tuple(cells)
