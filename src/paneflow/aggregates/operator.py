"""An operator: the smallest thing that is folded over events and merged over slices.

The aggregates of a query ask for operators; equal operators are computed once, so that `mean` and
`sum` of one column share their sum, and `var` and `std` their deviations. An operator's partial is
a tuple of components; over many slices each component is one column: an array of scalars, an array
of fixed-width rows (a Bloom filter, a moment sketch), or an array of Python objects (a sketch of
another library).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Partials = tuple[Array, ...]

TIME = "\0time"
"""Stands for the query's time column among an operator's inputs."""


@dataclass(frozen=True)
class Input:
    """A column that `lift` reads, and the form in which it reads it."""

    column: str
    form: Literal["value", "float", "hash", "object"] = "value"


@dataclass(frozen=True)
class Component:
    """One column of partials. `column` names the input column whose values it holds, if any."""

    name: str
    dtype: Literal["int32", "int64", "uint64", "float64", "bool", "object"]
    width: int | None = None
    column: str | None = None


class Code(NamedTuple):
    """The part of an operator that becomes machine code."""

    title: str
    inputs: int
    components: tuple[Component, ...]
    lift: Callable[..., Any] | None
    combine: Callable[..., Any]
    absorb: Callable[..., Any] | None
    invert: Callable[..., Any] | None
    parameters: tuple[Any, ...]
    bare: bool
    compiled: bool
    combine_into: Callable[..., Any] | None
    owner: str
    booleans: tuple[int, ...]
    gather: Callable[..., Any] | None


class Running(NamedTuple):
    """Partials in another form, to which events are added one by one."""

    operator: Operator
    """Absorbs events into such partials, and combines them; their columns have the same types."""
    opened: Callable[[Any], Any]
    """From columns of partials to columns in this form."""
    settled: Callable[[Any], Any]
    """And back."""


@dataclass(frozen=True, repr=False)
class Operator:
    """lift and combine over typed components.

    Operators with equal `name`, `inputs` and `parameters` are the same operator. If there is only
    one component, the functions take and return it bare, not as a tuple.

    Attributes:
        name: What is computed.
        inputs: The columns that `lift` reads.
        components: The columns of a partial.
        identity: The partial that changes nothing when combined.
        combine: `combine(a, b)` merges two partials, of which a is the earlier.
        lift: `lift(*inputs, *parameters)` makes the partial of one event.
        absorb: `absorb(partial, *inputs, *parameters)` adds one event to a partial, where that is
            cheaper than lift and combine.
        gather: `gather(first, end, *columns)` makes the partial of a run of events, where that is
            better than one event after the other.
        fold_many: `fold_many(arrays, parameters)` makes a partial of a whole slice's arrays, for
            partials that are Python objects.
        parameters: Further arguments of the functions.
        bare: Whether a partial of one component is passed without a tuple.
        combine_into: `combine_into(target, a, b)`, for a partial that is one row: writes
            `combine(a, b)` into the row `target`, which may be a or b, without making arrays.
            Threads that allocate arrays slow each other down.
        invert: `invert(whole, part)` removes the earliest part from a partial; only where exact.
        selective: Whether combine returns one of its arguments, as max does.
        splittable: Whether parts of one slice whose events interleave may be combined.
        dump: Makes bytes of a partial that is a Python object.
        load: Makes a partial of these bytes.
        compiled: Whether the functions are compiled.
        owner: The aggregate to which the functions belong, if a user wrote them.
        booleans: The inputs that `lift` takes as booleans; columns hold them as integers.
        running: How events are added to many partials at a time, one by one, where another form of
            the partial makes that cheaper.
        provides: Operators over the same inputs whose components are among this one's, as pairs of
            a name and the places of the components.
    """

    name: str
    inputs: tuple[Input, ...]
    components: tuple[Component, ...] = field(compare=False)
    identity: tuple[Any, ...] = field(compare=False)
    combine: Callable[..., Any] = field(compare=False)
    lift: Callable[..., Any] | None = field(default=None, compare=False)
    absorb: Callable[..., Any] | None = field(default=None, compare=False)
    gather: Callable[..., Any] | None = field(default=None, compare=False)
    fold_many: Callable[..., Any] | None = field(default=None, compare=False)
    parameters: tuple[Any, ...] = ()
    bare: bool = field(default=True, compare=False)
    combine_into: Callable[..., Any] | None = field(default=None, compare=False)
    invert: Callable[..., Any] | None = field(default=None, compare=False)
    selective: bool = field(default=False, compare=False)
    splittable: bool = field(default=True, compare=False)
    dump: Callable[[Any], bytes] | None = field(default=None, compare=False)
    load: Callable[[bytes], Any] | None = field(default=None, compare=False)
    compiled: bool = field(default=True, compare=False)
    owner: str = field(default="", compare=False)
    booleans: tuple[int, ...] = field(default=(), compare=False)
    running: Running | None = field(default=None, compare=False)
    provides: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"Operator({self.name!r}, {', '.join(map(repr, self.columns))})"

    @property
    def code(self) -> Code:
        """What a kernel of this operator depends on."""
        return Code(
            self.name.split(":")[0],
            len(self.inputs),
            self.components,
            self.lift,
            self.combine,
            self.absorb,
            self.invert,
            self.parameters,
            self.bare,
            self.compiled,
            self.combine_into,
            self.owner,
            self.booleans,
            self.gather,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The value columns that must not be null for an event to count."""
        return tuple(dict.fromkeys(i.column for i in self.inputs if i.column != TIME))

    @property
    def exact(self) -> bool:
        """Whether the result is the same to the bit however combines are grouped."""
        rounded = ("float64", "object")
        return self.selective or all(c.dtype not in rounded for c in self.components)

    def start(self) -> tuple[Any, ...]:
        """The identity, each component in its type: what every fold starts from.

        Returns:
            A partial.
        """
        return tuple(
            value
            if c.dtype == "object"
            else np.dtype(c.dtype).type(value)
            if c.width is None
            else np.full(c.width, value, c.dtype)
            for c, value in zip(self.components, self.identity, strict=True)
        )

    def empty(self, n: int) -> Partials:
        """Columns for partials, not yet filled.

        Args:
            n: How many partials.

        Returns:
            An array for each component.
        """
        return tuple(
            np.empty(n if c.width is None else (n, c.width), c.dtype) for c in self.components
        )


def fill(cells: Array, identity: Any) -> None:
    """Fill a column of partials with the identity."""
    if cells.dtype == object:
        for i in range(len(cells)):  # a sequence as identity would be spread over the column
            cells[i] = identity
    else:
        cells[:] = identity


def share(wanted: list[Operator]) -> dict[Operator, tuple[Operator, tuple[int, ...]]]:
    """The fewest operators that provide all those wanted, and where to find their components."""
    distinct = list(dict.fromkeys(wanted))
    found = {op: (op, tuple(range(len(op.components)))) for op in distinct}
    for richer in distinct:
        for name, which in richer.provides:
            for op in distinct:
                if op.name == name and op.inputs == richer.inputs:
                    found[op] = (richer, which)
    return found
