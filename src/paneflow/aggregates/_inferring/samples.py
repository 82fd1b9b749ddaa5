"""What users' functions return for sample events, run as plain Python.

Compiled functions must return the same for them. For functions that run as Python, the results on
samples decide the type of all results. Samples that the functions cannot take are skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paneflow.aggregates._functions.results import plain_value
from paneflow.aggregates.laws import check_shape
from paneflow.aggregates.values import Kind

Dtype = Literal["int64", "float64", "bool"]
Event = tuple[Any, ...]
CASTS: dict[str, Callable[[Any], Any]] = {"int64": int, "float64": float, "bool": bool}
OF_KIND: dict[Kind, tuple[Any, ...]] = {
    Kind.INTEGER: (2, -3, 0, 7),
    Kind.FLOAT: (1.25, -0.5, 0.0, 3.0),
    Kind.BOOLEAN: (True, False),
    Kind.TEXT: ("a", "bc", ""),
    Kind.TEMPORAL: (2, -3, 0, 7),
}
TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.FLOAT: (float, int),
    Kind.BOOLEAN: (bool,),
    Kind.TEXT: (str, bytes),
    Kind.TEMPORAL: (int,),
}


@dataclass(frozen=True, eq=False)
class Tried:
    """Sample events, and partials of them: for each event its own, then that of all so far."""

    events: list[Event]
    partials: list[Any]
    bare: bool

    def cells(self, partial: Any, dtypes: Sequence[Dtype]) -> tuple[Any, ...]:
        """A partial's components in their types."""
        cells = (partial,) if self.bare else partial
        return tuple(CASTS[d](cell) for d, cell in zip(dtypes, cells, strict=True))

    def results(
        self, lower: Callable[[Any], Any], dtypes: Sequence[Dtype] | None
    ) -> Iterator[tuple[int, Any]]:
        """What lower returns for the partials it can take, with their places.

        `dtypes` are the types in which compiled code holds partials.
        """
        for k, partial in enumerate(self.partials):
            given = partial
            if dtypes is not None:
                cells = self.cells(partial, dtypes)
                given = cells[0] if self.bare else cells
            result = attempt(lower, given)
            if not isinstance(result, Failure):
                yield k, plain_value(result)


@dataclass(frozen=True)
class Failure:
    """What a function did instead of returning a result."""

    call: str
    error: str

    def __str__(self) -> str:
        return f"{self.call}: {self.error}"


def try_out(
    what: str,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    events: Iterable[Event],
) -> Tried | Failure:
    """Fold sample events one by one; the last failure if the functions take none of them."""
    taken: list[Event] = []
    partials: list[Any] = []
    failure = Failure("lift", "there is no sample")
    whole = identity
    for event in events:
        lifted = attempt(lift, *event)
        one = lifted if isinstance(lifted, Failure) else attempt(combine, identity, lifted)
        grown = one if isinstance(one, Failure) else attempt(combine, whole, one)
        if isinstance(grown, Failure):
            failure = grown
            continue
        whole = grown
        taken.append(event)
        partials += [one, grown]
    if not taken:
        return failure
    check_shape(what, partials, identity)
    return Tried(taken, partials, not isinstance(identity, tuple))


def attempt(function: Callable[..., Any], *values: Any) -> Any:
    """The result, or how the function failed."""
    name = getattr(function, "__name__", "function")
    call = f"{name}({', '.join(map(repr, values))})"
    try:
        result = function(*values)
    except Exception as error:
        return Failure(call, f"{type(error).__name__}: {error}")
    # The root of a negative number is complex in Python, and NaN in compiled code.
    if any(isinstance(c, complex) for c in (result if isinstance(result, tuple) else (result,))):
        return Failure(call, f"the result is {result!r}")
    return result


def events_of(kinds: Sequence[Kind], given: Iterable[Event]) -> Iterator[Event]:
    """Sample events for columns of these kinds: the user's, as far as they fit, then ours."""
    for event in given:
        if len(event) == len(kinds) and all(map(_fits, event, kinds)):
            yield tuple(
                float(v) if kind is Kind.FLOAT else v for v, kind in zip(event, kinds, strict=True)
            )
    for shift in range(max(len(OF_KIND[kind]) for kind in kinds)):
        yield tuple(OF_KIND[kind][(shift + k) % len(OF_KIND[kind])] for k, kind in enumerate(kinds))


def other_kinds(columns: int) -> Iterator[tuple[Kind, ...]]:
    """Kinds that columns of unknown type may have."""
    likely = (Kind.INTEGER, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN)
    return itertools.islice(itertools.product(likely, repeat=columns), 256)


def _fits(value: Any, kind: Kind) -> bool:
    boolean = isinstance(value, bool) == (kind is Kind.BOOLEAN)
    return boolean and isinstance(value, TYPES[kind])
