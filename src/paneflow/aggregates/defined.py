"""define: a user's own incremental aggregate, at the speed of a built-in.

lift, combine and lower are plain Python over scalars and tuples. They are compiled together with
the loops around them; `_inferring/typed.py` decides whether, and in which types. What cannot be
compiled runs as Python, with a warning that says why.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from paneflow._display import Call
from paneflow.aggregates._functions.identity import digest_of
from paneflow.aggregates._functions.results import fitted, plain_value
from paneflow.aggregates._functions.roles import Role
from paneflow.aggregates._functions.sources import remember_texts, texts_of
from paneflow.aggregates._inferring.samples import Event, Failure, attempt, other_kinds
from paneflow.aggregates._inferring.typed import Functions, Typed, lower_all, typed
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws, check_laws
from paneflow.aggregates.operator import Array, Operator
from paneflow.aggregates.values import SIMPLE, Kind, kind_of
from paneflow.errors import InputError, PaneflowError, QueryError, UnsupportedError
from paneflow.names import is_name

TEXTS = "texts"
"""The key of the functions' texts in a definition that is sent to another process."""
SAMPLES: tuple[Any, ...] = (0.5, 1.25, 2.0, 3.75, -1.5, 1, 2, 7)
MOST_SAMPLES = 64
"""Laws are checked on pairs and triples of samples, so their number must be small."""


class SlowAggregateWarning(UserWarning):
    """A user-defined aggregate could not be compiled and runs as Python."""


@dataclass(frozen=True, eq=False, repr=False)
class Definition:
    """lift, combine and lower; call it with columns to get an aggregate of them.

    Attributes:
        lift: Makes a partial of one event's column values.
        combine: Merges two partials.
        lower: Makes the result of a partial.
        identity: The partial that changes nothing when combined.
        laws: What holds for `combine`.
        invert: Removes the earliest part from a partial.
        title: The name of the aggregate.
        samples: The user's own, on which the laws were found to hold.
        checked: Whether there were samples on which to check the laws.
        reads: A digest of what the functions read when a query last started: it is compiled into
            them.

    Example:
        >>> from paneflow import aggregates as A
        >>> keep = lambda x: x
        >>> largest = A.define(keep, max, keep, -1e300, commutative=True, name="largest")
        >>> largest
        define(name='largest')
        >>> largest("load")
        largest('load')
    """

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    identity: Any
    laws: Laws
    invert: Callable[..., Any] | None = None
    title: str = "define"
    samples: tuple[Event, ...] = ()
    checked: bool = True
    reads: str = field(default="", init=False)

    def __repr__(self) -> str:
        return Call("define", options={"name": self.title}).text(repr)

    def __getstate__(self) -> dict[str, Any]:
        # A worker on another machine does not have the file in which the functions are defined.
        texts = texts_of(self.lift, self.combine, self.lower)
        return vars(self) | {TEXTS: texts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        remember_texts(state.pop(TEXTS))
        vars(self).update(state)

    def look_again(self) -> None:
        """Notice whether what the functions read has changed since they were compiled."""
        try:
            found = digest_of(self.title, (self.lift, self.combine, self.lower))
        except UnsupportedError:
            return
        object.__setattr__(self, "reads", found)

    def __call__(self, *columns: str) -> Defined:
        if not columns:
            raise QueryError(f"{self.title}: name the columns that lift reads, in its order")
        return Defined(tuple(columns), self)


@dataclass(frozen=True, repr=False)
class Defined(Constant):
    definition: Definition = None  # type: ignore[assignment]

    name: ClassVar[str] = "define"
    accepts: ClassVar[tuple[Kind, ...]] = SIMPLE

    @property
    def laws(self) -> Laws:  # type: ignore[override]
        return self.definition.laws

    @property
    def lift(self) -> Role:
        return Role(str(self), "lift", self.definition.lift)

    @property
    def combine(self) -> Role:
        return Role(str(self), "combine", self.definition.combine)

    @property
    def lower_one(self) -> Role:
        return Role(str(self), "lower", self.definition.lower)

    @property
    def identity(self) -> Any:
        return self.definition.identity

    def check(self, types: Types) -> None:
        super().check(types)
        self.definition.look_again()

    def result_type(self, types: Types) -> pa.DataType:
        kinds = tuple(kind_of(types[c], c) for c in self.columns)
        found = _typed(self, kinds, self.definition.reads)
        if isinstance(found, Failure):
            given = ", ".join(f"{c!r} has type {types[c]}" for c in self.columns)
            raise InputError(
                f"{self}: its functions take no sample of such columns: {given}, and {found}; "
                f"cast the columns, or pass define(..., samples=[...]) of values they take"
            )
        return found.result

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        given = tuple(kinds[c] for c in self.columns)
        return (_settled(self, given, self.definition.reads).operator,)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        found = _settled(self, tuple(kinds[c] for c in self.columns), self.definition.reads)
        (parts,) = merged
        lower = Role(str(self), "lower", self.definition.lower, found.lowered is not None)
        cells = zip(*(p.tolist() for p in parts), strict=True)
        if found.lowered is not None:
            try:
                return lower_all(found, lower, n, parts)
            except PaneflowError as error:
                # Compiled code knows only that it failed: run as Python, it shows where.
                for counted, cell in zip((n > 0).tolist(), cells, strict=True):
                    if counted:
                        lower(cell[0] if found.operator.bare else cell)
                said = str(error).replace("lift or combine raised", "lower raised")
                raise InputError(said) from error.__cause__
        lowered = [
            lower(cell[0] if found.operator.bare else cell) if counted else None
            for counted, cell in zip((n > 0).tolist(), cells, strict=True)
        ]
        return self.fitted(lowered, found.result), None

    def fitted(self, results: Sequence[Any], type_: pa.DataType) -> pa.Array:
        """What lower returned, in the type of the results; integers become floats if necessary."""
        advice = "let lower return one type, or pass define(..., samples=[...]) that show all types"
        plain = [plain_value(result) for result in results]
        if type_ == pa.float64():
            plain = [_as_float(self, r) if isinstance(r, int) else r for r in plain]
        elif pa.types.is_integer(type_):
            plain = [int(r) if isinstance(r, bool) else r for r in plain]
        return fitted(f"{self}: lower", plain, type_, advice)

    def _call(self) -> Call:
        return Call(self.definition.title, self.columns)


def _as_float(aggregate: Defined, whole: int) -> float:
    try:
        return float(whole)
    except OverflowError as error:
        raise InputError(
            f"{aggregate}: lower returned {whole}, which does not fit into a float"
        ) from error


@functools.lru_cache(maxsize=256)
def _typed(aggregate: Defined, kinds: tuple[Kind, ...], reads: str) -> Typed | Failure:
    user = aggregate.definition
    functions = Functions(
        str(aggregate),
        aggregate.columns,
        aggregate.lift,
        aggregate.combine,
        aggregate.lower_one,
        user.identity,
        user.laws.commutative,
        user.samples,
    )
    return typed(functions, kinds)


@functools.lru_cache(maxsize=256)
def _settled(aggregate: Defined, kinds: tuple[Kind, ...], reads: str) -> Typed:
    """How a definition runs over columns of given kinds; warns if it runs as Python."""
    user = aggregate.definition
    found = _typed(aggregate, kinds, reads)
    if isinstance(found, Failure):
        # Without a table the kinds are only guessed: take the first that the functions take.
        guesses = (_typed(aggregate, guess, reads) for guess in other_kinds(len(kinds)))
        taken = next((guess for guess in guesses if isinstance(guess, Typed)), None)
        if taken is None:
            raise QueryError(
                f"{aggregate}: its functions take no sample: {found}; "
                f"pass define(..., samples=[...]) of values they take"
            )
        found = taken
    if not user.checked:
        _check(str(aggregate), user, found.tried.partials[::2])
    for reason in found.slow:
        warnings.warn(reason, SlowAggregateWarning, stacklevel=2)
    return found


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
    """Define an aggregate of your own, in three small functions.

    The functions are plain Python over scalars and tuples, and are compiled with Numba. A partial
    is a number or a tuple of numbers. Integers are int64, and one that does not fit is an error;
    where one branch returns a float, all of them do.

    Args:
        lift: `lift(value, ...)` makes a partial of one event's column values.
        combine: `combine(a, b)` merges two partials, of which a is the earlier, into a new one.
        lower: `lower(partial)` makes the result.
        identity: The partial that changes nothing when combined.
        invert: `invert(whole, part)` removes the earliest part from a partial, exactly.
        commutative: Whether `combine(a, b)` equals `combine(b, a)`.
        idempotent: Whether `combine(a, a)` equals `a`.
        name: What the aggregate is called in texts and errors.
        samples: Values on which the laws are checked (tuples for several columns). Those that
            `lift` cannot take are skipped; without samples, and if it takes none of the usual ones,
            laws are checked once the types of the columns are known.

    Returns:
        A function of column names that makes the aggregate.

    Example:
        >>> import math
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> norm = A.define(
        ...     lift=lambda x: x * x,
        ...     combine=lambda a, b: a + b,
        ...     lower=lambda p: math.sqrt(p),
        ...     identity=0.0,
        ...     commutative=True,
        ...     name="norm",
        ... )
        >>> norm("force")
        norm('force')
        >>> events = [{"t": 1, "force": 3.0}, {"t": 2, "force": 4.0}]
        >>> Query(W.tumbling(10), {"norm": norm("force")}, time="t").over(events)[0]["norm"]
        5.0
    """
    if not is_name(name):
        raise QueryError(f"define: name must be text, not {name!r}")
    for flag, given in (("commutative", commutative), ("idempotent", idempotent)):
        if not isinstance(given, bool):
            raise QueryError(f"{name}: {flag} must be True or False, not {given!r}")
    roles = {"lift": lift, "combine": combine, "lower": lower, "invert": invert}
    for role, function in roles.items():
        if not callable(function) and not (role == "invert" and function is None):
            raise QueryError(f"{name}: {role} must be a function, not {function!r}")
    if samples is not None and (isinstance(samples, str) or not isinstance(samples, Iterable)):
        raise QueryError(f"{name}: samples must be a list of values, not {samples!r}")
    try:
        some = [*itertools.islice(SAMPLES if samples is None else samples, MOST_SAMPLES)]
    except TypeError:  # an array of no dimension
        raise QueryError(f"{name}: samples must be a list of values, not {samples!r}") from None
    events = [sample if isinstance(sample, tuple) else (sample,) for sample in some]
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
