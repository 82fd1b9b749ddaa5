"""Variance and standard deviation, of a sample or of a population.

Floats keep a mean and the squared deviations from it (`_numerics/deviation.py`); integers, booleans
and decimals keep exact sums (`_numerics/whole_deviation.py`), which also give their sum and mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates._numerics import (
    deviation as of_floats,
    running_deviation as running,
    whole_deviation as of_integers,
)
from paneflow.aggregates._numerics.decimals import power_of_ten
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.operator import Array, Component, Input, Operator, Running
from paneflow.aggregates.values import ADDED, Kind


def deviation(column: str) -> Operator:
    """Count, mean and squared deviations of floats."""
    one_by_one = Operator(
        "running_deviation",
        (Input(column),),
        _components("origin", "total", "squares", "scale"),
        of_floats.IDENTITY,
        running.merge,
        absorb=running.absorb,
        bare=False,
    )
    return Operator(
        "deviation",
        (Input(column),),
        _components("mean", "rest", "squares", "scale"),
        of_floats.IDENTITY,
        of_floats.combine,
        of_floats.lift,
        gather=of_floats.gather,
        bare=False,
        running=Running(one_by_one, running.opened, running.settled),
    )


def _components(*names: str) -> tuple[Component, ...]:
    return Component("n", "int64"), *(Component(name, "float64") for name in names)


def whole_deviation(column: str) -> Operator:
    """The exact sums of integers and of their squares."""
    names = ("high", "low", "s0", "s1", "s2", "s3")
    return Operator(
        "whole_deviation",
        (Input(column),),
        tuple(Component(name, "int64") for name in names),
        of_integers.IDENTITY,
        of_integers.combine,
        of_integers.lift,
        gather=of_integers.gather,
        bare=False,
        provides=(("integer_sum", (0, 1)),),
    )


@dataclass(frozen=True, repr=False)
class Spread(Constant):
    """Variance and standard deviation."""

    accepts: ClassVar[tuple[Kind, ...]] = ADDED
    form: ClassVar[int] = 2
    taken: ClassVar[int] = 1
    root: ClassVar[bool] = False

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        return ((whole_deviation if kinds[column].whole else deviation)(column),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (parts,) = merged
        valid = n > self.taken
        divisor = np.maximum(n - self.taken, 1).astype(np.float64)
        kind = kinds[self.columns[0]]
        if kind.whole:
            spread = of_integers.spreads(n, *parts) / (np.maximum(n, 1) * divisor)
            if kind.scale:
                spread = spread / power_of_ten(kind.scale) / power_of_ten(kind.scale)
            return (np.sqrt(spread) if self.root else spread), valid
        *_, squares, scale = parts
        spread = squares / divisor
        with np.errstate(over="ignore", under="ignore"):
            # One scale after the other: their product is out of range.
            return (np.sqrt(spread) / scale if self.root else spread / scale / scale), valid


@dataclass(frozen=True, repr=False)
class Var(Spread):
    name: ClassVar[str] = "var"


@dataclass(frozen=True, repr=False)
class Std(Spread):
    name: ClassVar[str] = "std"
    root: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class VarPop(Spread):
    name: ClassVar[str] = "var_pop"
    taken: ClassVar[int] = 0


@dataclass(frozen=True, repr=False)
class StdPop(Spread):
    name: ClassVar[str] = "std_pop"
    taken: ClassVar[int] = 0
    root: ClassVar[bool] = True


def var(column: str) -> Var:
    """The sample variance.

    Args:
        column: A column of numbers or booleans. The variance is null for fewer than two values, and
            NaN if one of them is infinite or NaN.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"var": A.var("load")}, time="t")
        >>> query.over(events)[0]["var"]
        4.0
    """
    return Var((column,))


def std(column: str) -> Std:
    """The sample standard deviation.

    Args:
        column: A column of numbers or booleans. The deviation is null for fewer than two values,
            and NaN if one of them is infinite or NaN.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"std": A.std("load")}, time="t")
        >>> query.over(events)[0]["std"]
        2.0
    """
    return Std((column,))


def var_pop(column: str) -> VarPop:
    """The variance of the window as a whole population.

    Args:
        column: A column of numbers or booleans.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 3}, {"t": 2, "load": 5}]
        >>> query = Query(W.tumbling(10), {"var": A.var_pop("load")}, time="t")
        >>> query.over(events)[0]["var"]
        1.0
    """
    return VarPop((column,))


def std_pop(column: str) -> StdPop:
    """The standard deviation of the window as a whole population.

    Args:
        column: A column of numbers or booleans.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 3}, {"t": 2, "load": 5}]
        >>> query = Query(W.tumbling(10), {"std": A.std_pop("load")}, time="t")
        >>> query.over(events)[0]["std"]
        1.0
    """
    return StdPop((column,))
