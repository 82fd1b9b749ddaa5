"""The contract for user-defined windows.

A custom window is a small state machine. `step` sees each event of a key once, in total order, and
returns the next state and a mark: does a window open here, does the oldest open one close? That is
enough for every window whose bounds follow from the events, and small enough to be compiled.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from paneflow._display import bare
from paneflow.errors import InputError, PaneflowError, QueryError
from paneflow.windows._checks import flag
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Custom(Window):
    """The base class of user-defined windows: a subclass is a frozen dataclass with four parts.

    - `window_class`: `WindowClass.CF`, `FCF` or `FCA`;
    - `columns`: the names of the columns that `step` reads;
    - `initial`: a tuple of scalars, the state before a key's first event, parameters included;
    - `step(state, t, *values) -> (state, mark)`: a static method in plain Python over scalars and
      tuples, so that Numba can compile it. The mark is a sum of `KEEP`, `CLOSE_BEFORE`, `OPEN` and
      `CLOSE_AFTER`, applied in this order: the oldest open window ends before this event, a new
      window opens with it, the oldest open window ends with it.

    An event belongs to every window that is open once `CLOSE_BEFORE` and `OPEN` are applied.
    Windows are numbered per key in the order in which they open. An event with a null in one of
    the columns is not passed to `step` and joins the open windows. A window still open at the end
    of a finite input is incomplete; if `partial` is true, the oldest of them is emitted anyway.
    `columns`, `initial` and `partial` may be properties, class attributes, or fields with a
    default.

    Example:
        >>> from dataclasses import dataclass
        >>> from paneflow import windows as W
        >>> @dataclass(frozen=True)
        ... class Pairs(W.Custom):
        ...     window_class = W.WindowClass.FCF
        ...     columns = ()
        ...     initial = (0,)
        ...
        ...     @staticmethod
        ...     def step(state, t):
        ...         (seen,) = state
        ...         return (1 - seen,), W.CLOSE_AFTER if seen else W.OPEN
        >>> str(Pairs())
        'Pairs()'
        >>> Pairs.step((0,), 17)
        ((1,), 2)
    """

    step: ClassVar[Callable[..., tuple[tuple[Any, ...], int]]]

    @property
    def initial(self) -> tuple[Any, ...]:
        """The state before a key's first event."""
        raise QueryError(
            f"The custom window {type(self).__name__} has no `initial`: give the state before a "
            f"key's first event, a tuple of scalars."
        )

    @property
    def partial(self) -> bool:
        """Whether the oldest window still open at the end of a finite input is emitted."""
        return False

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(getattr(self, "window_class", None), WindowClass):
            raise QueryError(
                f"The custom window {name} does not declare its class: set `window_class` to "
                f"WindowClass.CF, WindowClass.FCF or WindowClass.FCA."
            )
        declared = next((vars(c)["step"] for c in type(self).__mro__ if "step" in vars(c)), None)
        if not isinstance(declared, staticmethod):
            raise QueryError(
                f"The custom window {name} needs a static method `step(state, t, *values)` that "
                f"returns the next state and a mark; found {declared!r}."
            )
        if not _is_tuple(self.columns, str):
            raise QueryError(
                f"The `columns` of the custom window {name} are {self.columns!r}: give a tuple of "
                f"column names."
            )
        flag(self.partial, "partial")
        if not _is_tuple(self.initial, (bool, int, float)):
            raise QueryError(
                f"The `initial` state of the custom window {name} is {self.initial!r}: give a "
                f"tuple of numbers or booleans, so that `step` can be compiled."
            )

    def checked_step(
        self, state: tuple[Any, ...], t: int, *values: Any
    ) -> tuple[tuple[Any, ...], int]:
        """Call `step` and check what it returns.

        Args:
            state: The state before the event.
            t: The time of the event.
            *values: The event's values of `columns`.

        Returns:
            The next state, in the types of `initial`, and the mark.

        Example:
            >>> class Single(Custom):
            ...     window_class = WindowClass.FCF
            ...     initial = (0,)
            ...
            ...     @staticmethod
            ...     def step(state, t):
            ...         return (t,), "open"
            >>> Single().checked_step((0,), 17)
            Traceback (most recent call last):
            ...
            paneflow.errors.InputError: Single(): step((0,), 17) returned the mark 'open': give a \
sum of KEEP, CLOSE_BEFORE, OPEN and CLOSE_AFTER
        """
        plain = tuple(getattr(cell, "item", lambda c=cell: c)() for cell in state)
        call = f"{self}: step({', '.join(map(repr, (plain, t, *values)))})"
        try:
            given = type(self).step(plain, t, *values)
        except PaneflowError:
            raise
        except Exception as error:
            raise InputError(f"{call} raised {type(error).__name__}: {error}") from error
        if not isinstance(given, tuple) or len(given) != 2:
            raise InputError(f"{call} returned {given!r}: give a pair, the next state and a mark")
        after, mark = given
        if not isinstance(after, tuple) or len(after) != len(self.initial):
            raise InputError(
                f"{call} returned the state {after!r}: give a tuple of {len(self.initial)} values, "
                f"as `initial` is {self.initial!r}"
            )
        if not hasattr(mark, "__index__") or not 0 <= mark.__index__() <= 7:
            raise InputError(
                f"{call} returned the mark {mark!r}: give a sum of KEEP, CLOSE_BEFORE, OPEN and "
                f"CLOSE_AFTER"
            )
        return tuple(map(self._fitted, self.initial, after)), mark.__index__()

    def _fitted(self, first: Any, cell: Any) -> Any:
        """A value of the state, in the type that it has in `initial`."""
        value = getattr(cell, "item", lambda: cell)()
        if isinstance(value, bool | int | float):
            if isinstance(first, float):
                return float(value)
            fits = value == value and abs(value) != math.inf and int(value) == value
            limits = (0, 1) if isinstance(first, bool) else (-(2**63), 2**63 - 1)
            if fits and limits[0] <= value <= limits[1]:
                return type(first)(value)
        raise InputError(
            f"the state of {self} changes its type: `initial` is {self.initial!r}, and step "
            f"returned {cell!r}, which does not fit; give a float in `initial` where step returns "
            f"floats"
        )

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The times of the first and the last event in the window."""
        return first_t, last_t

    def __str__(self) -> str:
        return self._call().text(_unmistakable)


def _unmistakable(value: object) -> str:
    """A field as text, with quotes if it is text that looks like a number, say."""
    text = str(value)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return bare(value)
    return repr(text) if isinstance(value, str) else text


def _is_tuple(given: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(given, tuple) and all(isinstance(item, kind) for item in given)
