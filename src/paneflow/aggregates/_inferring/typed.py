"""A user's aggregate over columns of given kinds: its types, its operator, and what is compiled.

Numba infers the types, and samples show whether the compiled functions return what they return in
Python. If not, the functions run as Python, over Python objects, and only the type of the results
comes from samples: a later result that does not fit is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numba.core.errors import NumbaError

from paneflow.aggregates._functions.checking import Unchecked
from paneflow.aggregates._functions.roles import Role
from paneflow.aggregates._functions.sources import python_function
from paneflow.aggregates._inferring import inferred
from paneflow.aggregates._inferring.samples import (
    Dtype,
    Event,
    Failure,
    Tried,
    attempt,
    events_of,
    try_out,
)
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.laws import alike
from paneflow.aggregates.operator import Array, Component, Input, Operator, Partials
from paneflow.aggregates.values import Kind
from paneflow.errors import QueryError

_numbers = itertools.count()
"""Numbers that distinguish operators: an aggregate has one for each combination of kinds."""


@dataclass(frozen=True)
class Functions:
    """The functions that a user has given, each in its role."""

    title: str
    columns: tuple[str, ...]
    lift: Role
    combine: Role
    lower: Role
    identity: Any
    commutative: bool
    samples: tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Typed:
    """How an aggregate runs over columns of given kinds."""

    tried: Tried
    operator: Operator
    result: pa.DataType
    lowered: Dtype | None
    """The type of numbers that the compiled lower returns; None: lower runs as Python."""
    slow: tuple[str, ...]
    """What runs as Python although it could be faster, and why."""


def typed(user: Functions, kinds: tuple[Kind, ...]) -> Typed | Failure:
    """Decide how functions run; the last failure if they accept no sample of such columns."""
    try:
        return _decided(user, kinds)
    except _NoneTaken as none:
        return none.failure


class _NoneTaken(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def _decided(user: Functions, kinds: tuple[Kind, ...]) -> Typed:
    events = events_of(kinds, user.samples)
    tried = try_out(user.title, user.lift.function, user.combine.function, user.identity, events)
    if isinstance(tried, Failure):
        raise _NoneTaken(tried)
    try:
        operator, dtypes = _compiled(user, kinds, tried)
    except (NumbaError, Unchecked) as error:
        result = _result_of_samples(user, tried, None)
        why = f"{user.title} runs as plain Python, about a hundred times slower: {_gist(error)}"
        return Typed(tried, _as_python(user, tried), result, None, (why,))
    try:
        return _with_lower(user, tried, operator, dtypes)
    except (NumbaError, Unchecked) as error:
        result = _result_of_samples(user, tried, dtypes)
        slow = f"lower of {user.title} runs as plain Python, for each window: {_gist(error)}"
        return Typed(tried, operator, result, None, (slow,) if _number(result) else ())


def _number(type_: pa.DataType) -> bool:
    return type_ in inferred.ARROW.values()


def _compiled(
    user: Functions, kinds: tuple[Kind, ...], tried: Tried
) -> tuple[Operator, tuple[Dtype, ...]]:
    """The operator with typed partials; raises if compiled code would not do what Python does."""
    if Kind.TEXT in kinds:
        raise Unchecked("it reads text")
    for role in (user.lift, user.combine):
        _check_written(role)
    lift, combine = replace(user.lift, limited=True), replace(user.combine, limited=True)
    alone = inferred.alone(lift, combine, len(kinds))
    dtypes = inferred.partial_types(alone, user.identity, kinds)
    operator = _operator(user, tried, "value", dtypes)
    operator = replace(
        operator,
        lift=lift,
        combine=combine,
        booleans=tuple(k for k, kind in enumerate(kinds) if kind is Kind.BOOLEAN),
    )
    _check_partials(alone, user, kinds, tried, dtypes)
    return operator, dtypes


def _check_written(role: Role) -> None:
    if python_function(role) is None:
        raise Unchecked(
            f"{role.name} is {role.function!r}, which is not a function written in Python: "
            f"write one that calls it, such as a lambda"
        )


def _operator(user: Functions, tried: Tried, form: Any, dtypes: Sequence[Any]) -> Operator:
    names = ["partial"] if tried.bare else [f"partial_{k}" for k in range(len(dtypes))]
    return Operator(
        f"define:{next(_numbers)}",
        tuple(Input(c, form) for c in user.columns),
        tuple(Component(n, d) for n, d in zip(names, dtypes, strict=True)),
        (user.identity,) if tried.bare else user.identity,
        user.combine,
        user.lift,
        bare=tried.bare,
        splittable=user.commutative,
        owner=user.title,
    )


def _as_python(user: Functions, tried: Tried) -> Operator:
    cells = 1 if tried.bare else len(user.identity)
    return replace(_operator(user, tried, "object", ["object"] * cells), compiled=False)


def _check_partials(
    alone: inferred.Alone,
    user: Functions,
    kinds: tuple[Kind, ...],
    tried: Tried,
    dtypes: tuple[Dtype, ...],
) -> None:
    """Raise if compiled functions do not return what they return in Python on samples."""

    def partial(given: Any) -> Any:
        cells = tried.cells(given, dtypes)
        return cells[0] if tried.bare else cells

    identity = whole = partial(user.identity)
    for k, event in enumerate(tried.events):
        lifted = _on_sample(alone.lift, *map(_as_kind, event, kinds))
        one = partial(_on_sample(alone.combine, identity, partial(lifted)))
        whole = partial(_on_sample(alone.combine, whole, one))
        for found, expected in zip((one, whole), tried.partials[2 * k : 2 * k + 2], strict=True):
            if not alike(found, partial(expected)):
                raise _differs("the partial", tried, 2 * k, found, expected)


def _as_kind(value: Any, kind: Kind) -> Any:
    return bool(value) if kind is Kind.BOOLEAN else float(value) if kind is Kind.FLOAT else value


def _on_sample(run: Any, *arguments: Any) -> Any:
    try:
        return run(*arguments)
    except NumbaError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Unchecked(f"compiled, it raises what it does not raise in Python: {said}") from error


def _with_lower(
    user: Functions, tried: Tried, operator: Operator, dtypes: tuple[Dtype, ...]
) -> Typed:
    _check_written(user.lower)
    lower = inferred.lower_alone(user.lower)
    lowered, result = inferred.result_type(lower, dtypes, tried.bare)
    if lowered is None:
        return Typed(tried, operator, result or _result_of_samples(user, tried, dtypes), None, ())
    expected = dict(tried.results(user.lower.function, dtypes))
    if not expected:
        _result_of_samples(user, tried, dtypes)
    for k, value in expected.items():
        cells = tried.cells(tried.partials[k], dtypes)
        found = _on_sample(lower, cells[0] if tried.bare else cells)
        if not alike(found, value):
            raise _differs("the result", tried, k, found, value)
    return Typed(tried, operator, inferred.ARROW[lowered], lowered, ())


def lower_all(made: Typed, lower: Role, n: Array, parts: Partials) -> tuple[Array, Array]:
    """The results of many windows by the compiled lower, and which of them are valid."""
    assert made.lowered is not None
    out, valid = np.zeros(len(n), made.lowered), np.zeros(len(n), np.bool_)
    _lowering(made, lower)(n, *parts, out, valid)
    return out, valid


def _lowering(made: Typed, lower: Role) -> Callable[..., Any]:
    run: Callable[..., Any] = kernel(
        replace(made.operator, combine=lower, lift=None), "lower_all", _lower_loop
    )
    return run


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


def _result_of_samples(
    user: Functions, tried: Tried, dtypes: tuple[Dtype, ...] | None
) -> pa.DataType:
    """The Arrow type that holds whatever lower returns for samples."""
    results = [result for _, result in tried.results(user.lower.function, dtypes)]
    if not results:
        failure = attempt(user.lower.function, tried.partials[0])
        if not isinstance(failure, Failure):
            failure = Failure("lower", "it takes no partial in the type that holds them all")
        raise _NoneTaken(failure)
    kinds = {type(result) for result in results if result is not None}
    for dtype, held in (("bool", {bool}), ("int64", {bool, int}), ("float64", {bool, int, float})):
        if kinds and kinds <= held:
            return inferred.ARROW[dtype]
    try:
        return pa.array(results).type
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise QueryError(
            f"{user.title}: lower returns results without a common Arrow type, such as "
            f"{results[0]!r} and {results[-1]!r}: {error}; let it return one type"
        ) from error


def _differs(what: str, tried: Tried, k: int, found: Any, expected: Any) -> Unchecked:
    events = tried.events[: k // 2 + 1]
    return Unchecked(
        f"compiled, {what} of {events!r} would be {found!r}, and not {expected!r} as in Python"
    )


def _gist(error: Exception) -> str:
    """The most informative line of a compiler's message."""
    if isinstance(error, Unchecked):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("Failed in ")] or ["it fails"]
    said = " ".join(telling[:2]) if telling[0].endswith(":") else telling[0]
    return f"Numba says: {said}"
