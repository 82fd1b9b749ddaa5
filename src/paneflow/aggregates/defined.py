"""define: a user's own incremental aggregate, at the speed of a built-in.

lift, combine and lower are plain Python over scalars and tuples. Their types are found by
running them in Python on values of the columns' types; then they are compiled with the loops
around them, and must give the same on those values. What cannot be compiled still runs, as
Python, with a warning that says why.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates._samples import (
    Event,
    Failure,
    Tried,
    attempt,
    events_of,
    other_kinds,
    plain,
    try_out,
)
from paneflow.aggregates._sources import python_function
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.laws import Laws, alike, check_laws
from paneflow.aggregates.operator import Array, Component, Input, Operator, Partials
from paneflow.aggregates.values import Kind, kind_of
from paneflow.errors import InputError, QueryError

SAMPLES: tuple[Any, ...] = (0.5, 1.25, 2.0, 3.75, -1.5, 1, 2, 7)
NUMPY = {pa.bool_(): np.bool_, pa.int64(): np.int64, pa.float64(): np.float64}


class SlowAggregateWarning(UserWarning):
    """A user's aggregate could not be compiled and runs as Python."""


@dataclass(frozen=True, eq=False)
class Definition:
    """lift, combine and lower; call it with columns to get an aggregate of them."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    identity: Any
    laws: Laws
    invert: Callable[..., Any] | None = None
    title: str = "define"
    samples: tuple[Event, ...] = ()
    """The user's own, of which the laws were found to hold."""
    checked: bool = True
    """Whether there were samples on which to check the laws."""

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
        kinds = tuple(kind_of(types[c], c) for c in self.columns)
        tried = _tried(self, kinds)
        if isinstance(tried, Failure):
            given = ", ".join(f"{c!r} has type {types[c]}" for c in self.columns)
            raise InputError(
                f"{self}: lift and combine take no sample of such columns: {given}, and {tried}; "
                f"cast the columns, or pass define(..., samples=[...]) of values they take"
            )
        return _result_type(self, tried)

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return (_operator(self, tuple(kinds[c] for c in self.columns))[0],)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        operator, tried = _operator(self, tuple(kinds[c] for c in self.columns))
        (parts,) = merged
        type_ = _result_type(self, tried)
        if operator.compiled and type_ in NUMPY:
            return _lower_compiled(self, operator, type_, n, parts)
        cells = zip(*(p.tolist() for p in parts), strict=True)
        lowered = [
            plain(self.definition.lower(cell[0] if operator.bare else cell)) if counted else None
            for counted, cell in zip((n > 0).tolist(), cells, strict=True)
        ]
        try:
            return pa.array(lowered, type_), None
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise InputError(
                f"{self}: lower gave {type_} for samples, and now something else: {error}; "
                f"let lower give one type, or pass define(..., samples=[...]) that show them all"
            ) from error

    def __str__(self) -> str:
        return f"{self.definition.title}({', '.join(self.columns)})"


def _lower_loop(shape: Shape) -> str:
    one = f"{shape.load('p', 'i')}" + ("[0]" if len(shape.components) == 1 else "")
    return f"""
        def lower_all(n, {shape.names("p")}, out, valid):
            for i in range(len(n)):
                if n[i] > 0:
                    result = user_combine({one})
                    if result is not None:
                        out[i] = result
                        valid[i] = True
        """


def _lower_compiled(
    aggregate: Defined, operator: Operator, type_: pa.DataType, n: Array, parts: Partials
) -> tuple[Array, Array]:
    out: Array = np.zeros(len(n), NUMPY[type_])
    valid = np.zeros(len(n), np.bool_)
    run = kernel(replace(operator, combine=aggregate.definition.lower), "lower_all", _lower_loop)
    run(n, *parts, out, valid)
    return out, valid


def _trial_loop(shape: Shape) -> str:
    """Partials of each event, and of all events so far."""
    return f"""
        def trial({shape.value_names()}, identity, {shape.names("p")}):
            whole = {shape.fresh("identity")}
            for i in range(len(v0)):
                one = absorb(identity, {shape.values("i")})
                whole = combine(whole, one)
                {shape.store("p", "2 * i", "one")}
                {shape.store("p", "2 * i + 1", "whole")}
        """


def _tried(aggregate: Defined, kinds: tuple[Kind, ...]) -> Tried | Failure:
    user = aggregate.definition
    events = events_of(kinds, user.samples)
    return try_out(str(aggregate), user.lift, user.combine, user.identity, events)


@functools.lru_cache(maxsize=256)
def _result_type(aggregate: Defined, tried: Tried) -> pa.DataType:
    """The Arrow type that holds whatever lower gives for samples."""
    results = [result for _, result in tried.results(aggregate.definition.lower)]
    if not results:
        failure = attempt(aggregate.definition.lower, tried.typed(tried.partials[0]))
        raise QueryError(f"{aggregate}: lower takes none of the partials of samples: {failure}")
    try:
        return pa.array(results).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise QueryError(
            f"{aggregate}: lower gives results of no one Arrow type, such as {results[0]!r} and "
            f"{results[-1]!r}: {error}; let it give one type"
        ) from error


@functools.lru_cache(maxsize=256)
def _operator(aggregate: Defined, kinds: tuple[Kind, ...]) -> tuple[Operator, Tried]:
    """The typed operator of a definition over columns of given kinds."""
    user = aggregate.definition
    tried = _tried(aggregate, kinds)
    if isinstance(tried, Failure):
        # Without a table the kinds are only guessed: take the first that the functions take.
        for guess in other_kinds(len(kinds)):
            if isinstance(found := _tried(aggregate, guess), Tried):
                tried, kinds = found, guess
                break
        else:
            raise QueryError(
                f"{aggregate}: lift and combine take no sample: {tried}; "
                f"pass define(..., samples=[...]) of values they take"
            )
    if not user.checked:
        _check(str(aggregate), user, tried.partials[::2])
    names = ["partial"] if tried.bare else [f"partial_{k}" for k in range(len(tried.dtypes))]
    text = Kind.TEXT in kinds
    operator = Operator(
        f"define:{id(user)}",
        tuple(Input(c, "object" if text else "value") for c in aggregate.columns),
        tuple(Component(n, d) for n, d in zip(names, tried.dtypes, strict=True)),
        (user.identity,) if tried.bare else user.identity,
        user.combine,
        user.lift,
        bare=tried.bare,
        splittable=user.laws.commutative,
    )
    why = _obstacle(operator, aggregate, kinds, tried)
    if why is None:
        return operator, tried
    warnings.warn(
        f"{aggregate} runs as plain Python, about a hundred times slower: {why}",
        SlowAggregateWarning,
        stacklevel=2,
    )
    objects = tuple(Component(n, "object") for n in names)
    inputs = tuple(Input(c, "object") for c in aggregate.columns)
    return replace(operator, inputs=inputs, components=objects, compiled=False), tried


def _obstacle(
    operator: Operator, aggregate: Defined, kinds: tuple[Kind, ...], tried: Tried
) -> str | None:
    """Why the functions cannot be compiled; None if they can, and give what they give in Python."""
    user = aggregate.definition
    if Kind.TEXT in kinds:
        return "it reads text"
    if any(c.dtype == "object" for c in operator.components):
        return "its partials are not numbers"
    for role, function in (("lift", user.lift), ("combine", user.combine), ("lower", user.lower)):
        if python_function(function) is None:
            return (
                f"{role} is {function!r}, which is not a function written in Python: "
                f"write one that calls it, such as a lambda"
            )
    inputs = [
        np.array(column, np.float64 if kind is Kind.FLOAT else np.int64)
        for kind, column in zip(kinds, zip(*tried.events, strict=True), strict=True)
    ]
    partials = operator.empty(len(tried.partials))
    try:
        kernel(operator, "trial", _trial_loop)(*inputs, operator.start(), *partials)
        folded = list(zip(*(p.tolist() for p in partials), strict=True))
        for k, (found, partial) in enumerate(zip(folded, tried.partials, strict=True)):
            if not alike(found, tried.cells(partial)):
                return _differs("the partial", tried.events[: k // 2 + 1], found, partial)
        type_ = _result_type(aggregate, tried)
        if type_ in NUMPY:
            expected = dict(tried.results(user.lower))
            n = np.array([k in expected for k in range(len(folded))], np.int64)
            out, valid = _lower_compiled(aggregate, operator, type_, n, partials)
            for k, result in expected.items():
                lowered = out[k].item() if valid[k] else None
                if not alike(lowered, result):
                    return _differs("the result", tried.events[: k // 2 + 1], lowered, result)
    except QueryError:
        raise
    except Exception as error:  # whatever a compiler may say of a user's function
        return f"Numba says: {_gist(str(error))}"
    return None


def _differs(what: str, events: list[Event], found: Any, expected: Any) -> str:
    return f"compiled, {what} of {events!r} would be {found!r}, and not {expected!r} as in Python"


def _gist(message: str) -> str:
    """The line of a compiler's message that tells most."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("Failed in ")] or ["it fails"]
    return " ".join(telling[:2]) if telling[0].endswith(":") else telling[0]


def _check(what: str, user: Definition, partials: list[Any]) -> None:
    check_laws(
        what,
        partials,
        user.combine,
        user.identity,
        commutative=user.laws.commutative,
        idempotent=user.laws.idempotent,
        invert=user.invert,
    )


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
    samples: Iterable[Any] | None = None,
) -> Definition:
    """An aggregate of your own.

    `lift(value, ...)` makes a partial of one event's column values, `combine(a, b)` merges two
    partials, a being earlier, `lower(partial)` makes the result. A partial is a number or a tuple
    of numbers; `identity` is the one that changes nothing. Laws are checked on `samples`, values
    of which those that `lift` cannot take are passed over (tuples for several columns); if it
    takes none of the usual ones, laws are checked when the columns' types are known.

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
    roles = {"lift": lift, "combine": combine, "lower": lower, "invert": invert}
    for role, function in roles.items():
        if not callable(function) and not (role == "invert" and function is None):
            raise QueryError(f"{name}: {role} must be a function, not {function!r}")
    events = [
        s if isinstance(s, tuple) else (s,) for s in (SAMPLES if samples is None else samples)
    ]
    lifted = [(event, attempt(lift, *event)) for event in events]
    taken = [(event, partial) for event, partial in lifted if not isinstance(partial, Failure)]
    if samples is not None and not taken:
        raise QueryError(
            f"{name}: lift takes none of the samples{f': {lifted[-1][1]}' if lifted else ''}; "
            f"pass samples=[...] of values that the columns hold, tuples for several columns"
        )
    laws = Laws(
        commutative=commutative,
        invertible=invert is not None,
        idempotent=idempotent,
        order_sensitive=not commutative,
    )
    own = () if samples is None else tuple(event for event, _ in taken)
    user = Definition(lift, combine, lower, identity, laws, invert, name, own, bool(taken))
    _check(name, user, [partial for _, partial in taken])
    return user
