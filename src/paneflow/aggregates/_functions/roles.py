"""Users' functions in their roles: an error names the aggregate and the role of its function."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from paneflow.aggregates._functions.sources import python_function
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.errors import InputError, PaneflowError

INT64 = range(-(2**63), 2**63)
MOST = 1_000_000
"""Steps that are repeated as Python to find out where compiled code failed: about a second."""


@dataclass(frozen=True, eq=False)
class Role:
    """lift, combine, lower or invert of an aggregate; calls the user's function.

    If `limited`, it stands in for compiled code, so integers must fit into int64.
    """

    owner: str
    name: str
    function: Callable[..., Any]
    limited: bool = False

    @property
    def py_func(self) -> types.FunctionType | None:
        """What is compiled."""
        return python_function(self.function)

    def __call__(self, *arguments: Any) -> Any:
        try:
            result = self.function(*arguments)
        except PaneflowError:
            raise
        except Exception as error:
            raise InputError(
                f"{self._call(arguments)} raised {type(error).__name__}: {error}"
            ) from error
        if self.limited:
            for cell in result if isinstance(result, tuple) else (result,):
                if isinstance(cell, int) and cell not in INT64:
                    raise InputError(
                        f"{self._call(arguments)} is {cell}, which does not fit into int64: cast "
                        f"the columns to float64, or compute with floats"
                    )
        return result

    def _call(self, arguments: tuple[Any, ...]) -> str:
        shown = ", ".join(map(repr, arguments))
        return f"{self.owner}: {self.name}({shown if len(shown) <= 200 else shown[:200] + '...'})"


def guarded(run: Callable[..., Any], owner: str) -> Callable[..., Any]:
    """A compiled loop around a user's functions, whose exceptions name the aggregate."""

    def call(*arguments: Any) -> Any:
        try:
            return run(*arguments)
        except PaneflowError:
            raise
        except Exception as error:
            raise InputError(
                f"{owner}: lift or combine raised {type(error).__name__}: {error}"
            ) from error

    return call


@contextmanager
def folding(operator: Operator, inputs: Sequence[Array], edges: Array) -> Iterator[None]:
    """Explains what fails while events are folded into slices.

    Compiled code can only say that it failed. Run as plain Python over the same values in the same
    order, the functions fail again, with a traceback into the user's own lines.
    """
    try:
        yield
    except Exception:
        if operator.compiled and operator.absorb is None and operator.lift is not None:
            columns = [_read(k, values, operator) for k, values in enumerate(inputs)]
            for start, end in _some(edges[:-1], edges[1:]):
                partial = _identity(operator)
                for event in zip(*(values[start:end] for values in columns), strict=True):
                    lifted = operator.lift(*event, *operator.parameters)
                    partial = operator.combine(partial, lifted)
        raise


@contextmanager
def merging(operator: Operator, partials: Partials, lo: Array, hi: Array) -> Iterator[None]:
    """Explains what fails while slices are merged into windows, as `folding` does."""
    try:
        yield
    except Exception:
        if operator.compiled and all(c.width is None for c in operator.components):
            cells = list(zip(*(column.tolist() for column in partials), strict=True))
            for start, end in _some(lo, hi):
                merged = _identity(operator)
                for cell in cells[start:end]:
                    merged = operator.combine(merged, cell[0] if operator.bare else cell)
        raise


def _some(lo: Array, hi: Array) -> Iterator[tuple[int, int]]:
    """The first ranges, up to `MOST` steps in all."""
    enough = int(np.searchsorted(np.cumsum(hi - lo), MOST)) + 1
    return zip(lo[:enough].tolist(), np.minimum(hi, lo + MOST)[:enough].tolist(), strict=True)


def _read(k: int, values: Array, operator: Operator) -> list[Any]:
    read: list[Any] = (values != 0 if k in operator.booleans else values).tolist()
    return read


def _identity(operator: Operator) -> Any:
    return operator.identity[0] if operator.bare else operator.identity
