"""Aggregates of a window's values in total order: collect, concat, and whole-window functions.

`apply` is for what cannot be computed incrementally, such as a polynomial fitted to the prices of
each window (see examples/trading_fit.py): the function receives the window's values as arrays and
runs once per window.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow._display import Call, Word
from paneflow.aggregates._functions.results import fitted
from paneflow.aggregates.aggregate import Lowered, Ordered, Types
from paneflow.aggregates.operator import Array
from paneflow.aggregates.texts import taken
from paneflow.aggregates.values import SIMPLE, Kind, plain_type
from paneflow.errors import InputError, PaneflowError, QueryError
from paneflow.names import is_name


@dataclass(frozen=True, repr=False)
class Collect(Ordered):
    name: ClassVar[str] = "collect"
    result_column: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return pa.list_(plain_type(types[self.columns[0]]))

    def lower_sequences(self, arrays: Sequence[Any], lo: Array, hi: Array) -> Lowered:
        (values,) = arrays
        lengths = hi - lo
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] > np.iinfo(np.int32).max:
            raise PaneflowError(
                f"{self} would hold {offsets[-1]} values in one result, more than a list column "
                f"can: use fewer or shorter windows, or an aggregate that summarises"
            )
        positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - lo, lengths)
        # A null in the offsets makes the list null, so the mask rides there.
        marks = pa.array(offsets, pa.int32(), mask=np.append(lengths == 0, False))
        return pa.ListArray.from_arrays(marks, taken(values, pa.array(positions))), None


@dataclass(frozen=True, repr=False)
class Concat(Ordered):
    separator: str = ""

    name: ClassVar[str] = "concat"
    accepts: ClassVar[tuple[Kind, ...]] = (Kind.TEXT,)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.string()

    def lower_sequences(self, arrays: Sequence[Any], lo: Array, hi: Array) -> Lowered:
        try:
            texts = arrays[0].cast(pa.large_string()).to_pylist()
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{self}: column {self.columns[0]!r} holds bytes that are not UTF-8 text: {error}; "
                f"decode the column and cast it to a string type"
            ) from error
        joined = [
            self.separator.join(texts[a:b]) if b > a else None
            for a, b in zip(lo.tolist(), hi.tolist(), strict=True)
        ]
        return pa.array(joined, pa.large_string()), None


@dataclass(frozen=True, repr=False)
class Applied(Ordered):
    function: Callable[..., Any] = lambda *arrays: None
    returns: pa.DataType = pa.float64()

    name: ClassVar[str] = "apply"
    accepts: ClassVar[tuple[Kind, ...]] = SIMPLE

    def result_type(self, types: Types) -> pa.DataType:
        return self.returns

    def lower_sequences(self, arrays: Sequence[Any], lo: Array, hi: Array) -> Lowered:
        inputs = [a.to_numpy(zero_copy_only=False) for a in arrays]
        results = [
            self.call([values[a:b] for values in inputs]) if b > a else None
            for a, b in zip(lo.tolist(), hi.tolist(), strict=True)
        ]
        return self.fitted(results), None

    def call(self, arrays: Sequence[Array]) -> Any:
        """Call the function for one window.

        Neighbouring windows share their events, so the function can only read them.
        """
        for values in arrays:
            values.flags.writeable = False
        try:
            return self.function(*arrays)
        except PaneflowError:
            raise
        except Exception as error:
            said = f"{self}: the function raised {type(error).__name__}: {error}"
            if isinstance(error, ValueError) and "read-only" in str(error):
                said += "; windows share their events: copy an array before changing it"
            raise InputError(f"{said} (in a window of {len(arrays[0])} events)") from error

    def fitted(self, results: Sequence[Any]) -> pa.Array:
        """What the function returned, in the declared type."""
        advice = "pass returns= the Arrow type of what it returns"
        return fitted(f"{self}: the function", results, self.returns, advice)

    @property
    def title(self) -> str:
        """The function and its columns, without the type of the results."""
        return f"apply({function_name(self.function)}, {', '.join(self.columns)})"

    def _call(self) -> Call:
        options = {"returns": Word(self.returns)} if self.returns != pa.float64() else {}
        return Call("apply", (Word(function_name(self.function)), *self.columns), options)


def function_name(function: Any) -> str:
    """The name of a function, or of the class of another callable."""
    if isinstance(function, functools.partial):
        return f"partial({function_name(function.func)})"
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def collect(column: str) -> Collect:
    """All values in total order, as a list.

    Args:
        column: The column to read; nulls are left out.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"loads": A.collect("load")}, time="t")
        >>> query.over(events)[0]["loads"]
        [5, 3, 7]
    """
    return Collect((column,))


def concat(column: str, separator: str = "") -> Concat:
    """All texts in total order, joined into one.

    Args:
        column: A column of text; nulls are left out.
        separator: What to put between two texts.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "word": "so"}, {"t": 2, "word": "it"}, {"t": 3, "word": "goes"}]
        >>> query = Query(W.tumbling(10), {"text": A.concat("word", " ")}, time="t")
        >>> query.over(events)[0]["text"]
        'so it goes'
    """
    if not isinstance(separator, str) or not (is_name(separator) or separator == ""):
        raise QueryError(f"concat: separator must be text, not {separator!r}")
    return Concat((column,), separator)


def apply(
    function: Callable[..., Any], *columns: str, returns: pa.DataType | None = None
) -> Applied:
    """A function of a whole window.

    Args:
        function: Called with one NumPy array per column, which holds the window's values in total
            order. Windows share their events, so the arrays are read-only: copy one before changing
            it.
        *columns: The columns to read; events in which one of them is null are left out.
        returns: The Arrow type of what the function returns, by default float64. A result that does
            not fit is an error.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> def span(loads):
        ...     return loads.max() - loads.min()
        >>> events = [{"t": 1, "load": 5.0}, {"t": 2, "load": 3.0}, {"t": 4, "load": 7.0}]
        >>> Query(W.tumbling(10), {"span": A.apply(span, "load")}, time="t").over(events)[0]["span"]
        4.0
    """
    if not callable(function):
        raise QueryError(f"apply: a function is needed, not {function!r}")
    if not columns:
        raise QueryError('apply: name the columns the function reads: A.apply(fit, "price")')
    if returns is not None and not isinstance(returns, pa.DataType):
        raise QueryError(
            f"apply: returns must be an Arrow type, not {returns!r}: pass for example "
            f"returns=pa.float64()"
        )
    return Applied(tuple(columns), function, pa.float64() if returns is None else returns)
