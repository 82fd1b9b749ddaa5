"""What an aggregate is: the contract between a query and the engines.

An aggregate belongs to one of three families, by what a slice must keep of its events:

- `Constant`: operators with partials of a fixed size (distributive and algebraic functions);
- `Multiset`: how often each value occurs (median, mode, ...): windows add and remove slices'
  sorted runs and never sort again;
- `Ordered`: the values themselves, in total order (collect, whole-window functions).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pyarrow as pa

from paneflow._display import Call, code_html
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.aggregates.values import EVERY, Kind, kind_of
from paneflow.errors import InputError, QueryError
from paneflow.names import is_name

Kinds = Mapping[str, Kind]
Types = Mapping[str, pa.DataType]
Merged = Sequence[Partials]
"""The merged partials of an aggregate's operators, in their order."""
Lowered = tuple[Array | pa.Array, Array | None]
"""Values, and which of them are valid; None if all are."""


@dataclass(frozen=True, repr=False)
class Aggregate(ABC):
    """The base class of all aggregates: functions of a window's events.

    Use the functions of `paneflow.aggregates` to make one; `define` and `apply` make your own.

    Attributes:
        columns: The columns that are read.

    Example:
        >>> from paneflow import aggregates as A
        >>> peak = A.max("load")
        >>> isinstance(peak, A.Aggregate), peak.columns
        (True, ('load',))
    """

    columns: tuple[str, ...]

    name: ClassVar[str] = ""
    laws: ClassVar[Laws] = Laws()
    accepts: ClassVar[tuple[Kind, ...]] = EVERY
    #: The column whose values the result holds, in the column's type; None: another type.
    result_column: ClassVar[int | None] = None
    #: The result of a window without a counted event, instead of null.
    when_empty: ClassVar[int | None] = None
    #: Incremented when partials change their form: stored ones of an older form are refused.
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
        """The Arrow type of the results.

        Args:
            types: The Arrow types of the columns, by name.

        Returns:
            The type.

        Example:
            >>> import pyarrow as pa
            >>> from paneflow import aggregates as A
            >>> A.mean("load").result_type({"load": pa.int32()})
            DataType(double)
        """

    def check(self, types: Types) -> None:
        """Refuse columns of a type for which this aggregate has no meaning.

        Args:
            types: The Arrow types of the columns, by name.

        Example:
            >>> import pyarrow as pa
            >>> from paneflow import aggregates as A
            >>> A.concat("word").check({"word": pa.string()})
        """
        for column in self.columns:
            kind = kind_of(types[column], column)
            if kind.family not in self.accepts:
                expected = " or ".join(k.value for k in self.accepts)
                way = "cast it to float64" if kind.family is Kind.DECIMAL else "cast it"
                raise InputError(
                    f"{self} needs a column of kind {expected}, but {column!r} has type "
                    f"{types[column]}: {way}, or choose another aggregate"
                )

    def _call(self) -> Call:
        """The call that makes this aggregate, without options that have their default value."""
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
    """An aggregate whose partial has a fixed size.

    Attributes:
        columns: The columns that are read.
    """

    #: Whether `lower` returns a NumPy array; otherwise it returns an Arrow array.
    scalar: ClassVar[bool] = True

    @abstractmethod
    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        """What must be folded and merged for this aggregate.

        Args:
            kinds: The kinds of the columns, by name.

        Returns:
            The operators; none for a count, which every engine knows.
        """

    @abstractmethod
    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        """The results of many windows.

        Args:
            n: The number of counted events of each window.
            merged: The merged partials of each operator, in the order of `operators`.
            kinds: The kinds of the columns, by name.

        Returns:
            The values, and which of them are valid; None if all are.
        """


@dataclass(frozen=True, repr=False)
class Multiset(Aggregate):
    """An aggregate of how often each value of a column occurs.

    Attributes:
        columns: The columns that are read.
    """

    laws: ClassVar[Laws] = Laws(invertible=True, growing=True)


@dataclass(frozen=True, repr=False)
class Ordered(Aggregate):
    """An aggregate of a window's values in total order.

    Attributes:
        columns: The columns that are read.
    """

    laws: ClassVar[Laws] = Laws(commutative=False, order_sensitive=True, growing=True)

    @abstractmethod
    def lower_sequences(self, arrays: Sequence[Any], lo: Array, hi: Array) -> Lowered:
        """The results of many windows.

        Args:
            arrays: The values of each column, in total order.
            lo: For each window, the position of its first value.
            hi: For each window, the position after its last value.

        Returns:
            The values, and which of them are valid; None if all are.
        """
