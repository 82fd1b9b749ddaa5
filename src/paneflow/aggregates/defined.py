"""define: a user's own incremental aggregate, at the speed of a built-in.

lift, combine and lower are plain Python over scalars and tuples. Their types are found by
running them once in Python on a value of the column's type; then they are compiled with the
loops around them. What cannot be compiled still runs, as Python, with a warning that says why.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numba
import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.laws import Laws, check_laws
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind, kind_of
from paneflow.errors import QueryError

Dtype = Literal["int64", "uint64", "float64", "bool", "object"]
SAMPLES: tuple[Any, ...] = (0.5, 1.25, 2.0, 3.75, -1.5, 1, 2, 7)
OF_KIND: dict[Kind, Any] = {
    Kind.INTEGER: 2,
    Kind.FLOAT: 1.25,
    Kind.BOOLEAN: True,
    Kind.TEXT: "a",
    Kind.TEMPORAL: 2,
}


class SlowAggregateWarning(UserWarning):
    """A user's aggregate could not be compiled and runs as Python."""


@dataclass(frozen=True)
class Definition:
    """lift, combine and lower; call it with columns to get an aggregate of them."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    identity: Any
    laws: Laws
    invert: Callable[..., Any] | None = None
    title: str = "define"

    def __call__(self, *columns: str) -> Defined:
        if not columns:
            raise QueryError(f"{self.title}: name the columns that lift reads, in its order")
        return Defined(tuple(columns), self)


@dataclass(frozen=True)
class Defined(Constant):
    definition: Definition = None  # type: ignore[assignment]

    name: ClassVar[str] = "define"

    @property
    def laws(self) -> Laws:  # type: ignore[override]
        return self.definition.laws

    @property
    def lift(self) -> Callable[..., Any]:
        return self.definition.lift

    @property
    def combine(self) -> Callable[..., Any]:
        return self.definition.combine

    @property
    def lower_one(self) -> Callable[..., Any]:
        return self.definition.lower

    @property
    def identity(self) -> Any:
        return self.definition.identity

    def result_type(self, types: Types) -> pa.DataType:
        kinds = {c: kind_of(types[c], c) for c in self.columns}
        sample = self.definition.lower(self._sample(kinds))
        return pa.scalar(_plain(sample)).type

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return (_operator(self, tuple(kinds[c] for c in self.columns)),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (operator,) = self.operators(kinds)
        (parts,) = merged
        result = _plain(self.definition.lower(self._sample(kinds)))
        if operator.compiled and isinstance(result, bool | int | float):
            dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(result)]
            out: Array = np.empty(len(n), dtype)
            run = kernel(replace(operator, combine=self.definition.lower), "lower_all", _lower_loop)
            run(n, *parts, out)
            return out, n > 0
        cells = zip(*(p.tolist() for p in parts), strict=True)
        lowered = [
            _plain(self.definition.lower(cell[0] if operator.bare else cell)) if counted else None
            for counted, cell in zip((n > 0).tolist(), cells, strict=True)
        ]
        return pa.array(lowered, pa.scalar(result).type), None

    def _sample(self, kinds: Kinds) -> Any:
        """A partial of one event, made of typical values."""
        values = [OF_KIND[kinds[c]] for c in self.columns]
        return self.definition.combine(self.definition.identity, self.definition.lift(*values))

    def __str__(self) -> str:
        return f"{self.definition.title}({', '.join(self.columns)})"


def _lower_loop(shape: Shape) -> str:
    one = f"{shape.load('p', 'i')}" + ("[0]" if len(shape.components) == 1 else "")
    return f"""
        def lower_all(n, {shape.names("p")}, out):
            for i in range(len(n)):
                if n[i] > 0:
                    out[i] = user_combine({one})
        """


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@functools.lru_cache(maxsize=256)
def _operator(aggregate: Defined, kinds: tuple[Kind, ...]) -> Operator:
    """The typed operator of a definition over columns of given kinds."""
    definition = aggregate.definition
    sample = aggregate._sample(dict(zip(aggregate.columns, kinds, strict=True)))
    bare = not isinstance(sample, tuple)
    cells = (sample,) if bare else sample
    starts = definition.identity if not bare else (definition.identity,)
    if len(cells) == 1 and not bare:
        raise QueryError(f"{aggregate}: a partial of one value is given bare, not as a tuple")
    if not isinstance(starts, tuple) or len(starts) != len(cells):
        raise QueryError(
            f"{aggregate}: identity {definition.identity!r} has not the shape of a partial, "
            f"which is {sample!r}: give both the same number of values"
        )
    dtypes = [_dtype(cell, start) for cell, start in zip(cells, starts, strict=True)]
    names = ["partial"] if bare else [f"partial_{k}" for k in range(len(cells))]
    text = Kind.TEXT in kinds
    operator = Operator(
        f"define:{id(definition)}",
        tuple(Input(c, "object" if text else "value") for c in aggregate.columns),
        tuple(Component(n, d) for n, d in zip(names, dtypes, strict=True)),
        starts,
        definition.combine,
        definition.lift,
        bare=bare,
        splittable=definition.laws.commutative,
    )
    why = _obstacle(operator, aggregate, kinds)
    if why is None:
        return operator
    warnings.warn(
        f"{aggregate} runs as plain Python, about a hundred times slower: {why}",
        SlowAggregateWarning,
        stacklevel=2,
    )
    objects = tuple(Component(n, "object") for n in names)
    inputs = tuple(Input(c, "object") for c in aggregate.columns)
    return replace(operator, inputs=inputs, components=objects, compiled=False)


def _dtype(cell: Any, start: Any) -> Dtype:
    kinds = {type(_plain(cell)), type(_plain(start))}
    if kinds == {bool}:
        return "bool"
    if kinds <= {int, bool}:
        return "int64"
    return "float64" if kinds <= {int, float, bool} else "object"


def _obstacle(operator: Operator, aggregate: Defined, kinds: tuple[Kind, ...]) -> str | None:
    """Why the functions cannot be compiled; None if they can."""
    if Kind.TEXT in kinds:
        return "it reads text"
    if any(c.dtype == "object" for c in operator.components):
        return "its partials are not numbers"
    from_kind = {Kind.FLOAT: np.float64}
    inputs = [np.empty(0, from_kind.get(kind, np.int64)) for kind in kinds]

    def nothing(shape: Shape) -> str:
        return f"""
        def trial({shape.value_names()}, identity, {shape.names("p")}):
            p = identity
            for i in range(len(v0)):
                p = combine(p, absorb(p, {shape.values("i")}))
                {shape.store("p", "i", "p")}
        """

    try:
        kernel(operator, "trial", nothing)(*inputs, operator.start(), *operator.empty(0))
        result = _plain(
            aggregate.definition.lower(
                aggregate._sample(dict(zip(aggregate.columns, kinds, strict=True)))
            )
        )
        if isinstance(result, bool | int | float):
            empty: Array = np.empty(
                0, {bool: np.bool_, int: np.int64, float: np.float64}[type(result)]
            )
            lowering = replace(operator, combine=aggregate.definition.lower)
            kernel(lowering, "lower_all", _lower_loop)(
                np.empty(0, np.int64), *operator.empty(0), empty
            )
    except numba.core.errors.NumbaError as error:
        return f"Numba says: {str(error).strip().splitlines()[0]}"
    return None


def define(
    lift: Callable[..., Any],
    combine: Callable[..., Any],
    lower: Callable[..., Any],
    identity: Any,
    invert: Callable[..., Any] | None = None,
    *,
    commutative: bool,
    idempotent: bool = False,
    name: str = "define",
    samples: Iterable[Any] = SAMPLES,
) -> Definition:
    """An aggregate of your own.

    `lift(value, ...)` makes a partial of one event's column values, `combine(a, b)` merges two
    partials, a being earlier, `lower(partial)` makes the result. A partial is a number or a tuple
    of numbers; `identity` is the one that changes nothing. Laws are checked on `samples`, values
    of which those that `lift` cannot take are passed over (tuples for several columns).

    >>> import math
    >>> geometric = define(
    ...     lift=lambda x: (math.log(x), 1),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     lower=lambda p: math.exp(p[0] / p[1]),
    ...     identity=(0.0, 0),
    ...     commutative=True,
    ...     name="geometric",
    ... )
    >>> print(geometric("price"))
    geometric(price)
    """
    for role, function in (("lift", lift), ("combine", combine), ("lower", lower)):
        if not callable(function):
            raise QueryError(f"{name}: {role} must be a function, not {function!r}")
    partials: list[Any] = []
    for sample in samples:
        try:
            partials.append(lift(*(sample if isinstance(sample, tuple) else (sample,))))
        except Exception:  # a sample outside lift's domain says nothing about its laws
            continue
    check_laws(name, partials, combine, identity, commutative=commutative, invert=invert)
    laws = Laws(
        commutative=commutative,
        invertible=invert is not None,
        idempotent=idempotent,
        order_sensitive=not commutative,
    )
    return Definition(lift, combine, lower, identity, laws, invert, name)
