"""What an aggregate is: the contract between a query and the engines.

An aggregate belongs to one of three families, by what a slice must keep of its events:

- `Constant`: operators with partials of a fixed size (distributive and algebraic functions);
- `Multiset`: how often each value occurs (median, mode, ...): windows add and remove slices'
  sorted runs, they never sort again;
- `Ordered`: the values themselves, in total order (collect, whole-window functions).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pyarrow as pa

from paneflow._faces import Call, code_html
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.aggregates.values import Kind, kind_of
from paneflow.errors import InputError, QueryError
from paneflow.names import is_name

Kinds = Mapping[str, Kind]
Types = Mapping[str, pa.DataType]
Merged = Sequence[Partials]
"""The merged partials of an aggregate's operators, in their order."""
Lowered = tuple[Array | pa.Array, Array | None]
"""Values, and which of them are valid (None: all)."""


@dataclass(frozen=True, repr=False)
class Aggregate(ABC):
    """A function of a window's events. `columns` are what it reads."""

    columns: tuple[str, ...]

    name: ClassVar[str] = ""
    laws: ClassVar[Laws] = Laws()
    accepts: ClassVar[tuple[Kind, ...]] = tuple(Kind)
    #: The column whose values, in its own type, the result holds; None: a type of its own.
    result_column: ClassVar[int | None] = None
    #: What a window without a counted event gives, in place of null.
    when_empty: ClassVar[int | None] = None
    #: Counts up when partials get another form: stored ones of an older form are refused.
    form: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for column in self.columns:
            if not is_name(column):
                raise QueryError(
                    f"{self.name}: a column is given by its name, not {column!r}: "
                    f'pass for example A.{self.name}("load")'
                )

    @abstractmethod
    def result_type(self, types: Types) -> pa.DataType:
        """The Arrow type of the result, given the types of the columns."""

    def check(self, types: Types) -> None:
        """Refuse columns of a type this aggregate has no meaning for."""
        for column in self.columns:
            kind = kind_of(types[column], column)
            if kind not in self.accepts:
                expected = " or ".join(k.value for k in self.accepts)
                raise InputError(
                    f"{self} needs a column of kind {expected}, but {column!r} has type "
                    f"{types[column]}: cast it, or choose another aggregate"
                )

    def _call(self) -> Call:
        """The call that makes this aggregate; options that have their default are left out."""
        own = {f.name: f.default for f in fields(self) if f.name != "columns"}
        options = {name: getattr(self, name) for name in own if getattr(self, name) != own[name]}
        return Call(self.name, self.columns, options)

    def __str__(self) -> str:
        return self._call().text(str, repr)

    def __repr__(self) -> str:
        return self._call().text(repr)

    def _repr_html_(self) -> str:
        return code_html(str(self))


@dataclass(frozen=True, repr=False)
class Constant(Aggregate):
    """An aggregate whose partial has a fixed size."""

    #: Whether `lower` gives a NumPy array; otherwise it gives one of Arrow.
    scalar: ClassVar[bool] = True

    @abstractmethod
    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        """What must be folded and merged for it."""

    @abstractmethod
    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        """Results of many windows: n counted events each, and the merged partials."""


@dataclass(frozen=True, repr=False)
class Multiset(Aggregate):
    """An aggregate of how often each value of a column occurs."""

    laws: ClassVar[Laws] = Laws(invertible=True, growing=True)


@dataclass(frozen=True, repr=False)
class Ordered(Aggregate):
    """An aggregate of the values of a window in total order."""

    laws: ClassVar[Laws] = Laws(commutative=False, order_sensitive=True, growing=True)

    @abstractmethod
    def lower_sequences(self, arrays: Sequence[Any], lo: Array, hi: Array) -> Lowered:
        """Results of windows that hold positions lo <= i < hi of the arrays."""
