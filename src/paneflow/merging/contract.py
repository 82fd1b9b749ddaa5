"""What a merge algorithm is: one small contract with two faces.

*Streaming*: a FIFO window of partials. `insert` adds the newest, `evict` drops the oldest,
`query` merges what is inside. It lives as long as its stream.

*Columnar*: a `Merger` holds the partials of many slices, and answers for a batch of windows that
are ranges of them, so that several windows of a query share one store. Windows come with `lo`
and `hi` never decreasing, as every window kind gives them: what enters first leaves first.

An algorithm is written once, as text of three functions over a state of flat arrays. The text is
compiled around an operator's combine, or run as plain Python where partials are Python objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials, fill
from paneflow.errors import UnsupportedError

FRONT, BACK = 0, 1
"""Counters every algorithm keeps: partials evicted and inserted so far."""


class Merger(Protocol):
    """Merged partials of ranges of slices."""

    name: ClassVar[str]

    def __init__(self, operator: Operator, partials: Partials) -> None: ...

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Refuse an operator whose combine breaks the law that the algorithm rests on."""
        return None  # most rest on no law but associativity

    def merge(self, lo: Array, hi: Array) -> Partials:
        """The partials lo <= i < hi of each window, combined in order."""
        ...


@dataclass(frozen=True)
class Algorithm:
    """A FIFO window as text, and the state it needs.

    The text defines `insert(STATE, p)`, `evict(STATE)` and `query(STATE)`, each marked `@helper`.
    STATE stands for `m, identity, a0, a1, ...`: the counters, the identity, and for every store
    its columns. Positions are counted from the beginning of the stream: `m[0]` partials were
    evicted and `m[1]` inserted. A *ring* holds position i at `i & (len - 1)`; other stores have
    the fixed number of cells given. `evict` is never called on an empty window.
    """

    name: str
    text: Callable[[Shape, str], str]
    rings: tuple[str, ...]
    cells: tuple[tuple[str, int], ...] = ()
    counters: int = 2
    initial: Callable[[int], dict[int, int]] = lambda size: {}
    """Counters that do not begin at zero, given the number of partials to expect."""
    answer: tuple[str, int] | None = None
    """The cell in which `query` leaves the answer, if it returns nothing. Then every function can
    be marked `@in_place`: rows are merged where they lie, and no arrays are made."""
    law: str | None = None
    """The law of combine it rests on, beyond associativity: None, 'invertible', 'selective'."""

    @property
    def stores(self) -> tuple[str, ...]:
        return (*self.rings, *(name for name, _ in self.cells))

    def state(self, shape: Shape) -> str:
        """The arguments that hold the state."""
        return ", ".join(["m", "identity", *(shape.names(store) for store in self.stores)])

    def helpers(self, shape: Shape) -> str:
        """The three functions."""
        return self.text(shape, self.state(shape))

    def ask(self, shape: Shape) -> str:
        """Statements that name the answer r; it may change with the next operation."""
        if self.answer is None:
            return f"r = query({self.state(shape)})"
        cell, index = self.answer
        return f"query({self.state(shape)}); r = {shape.load(cell, str(index))}"

    def check(self, operator: Operator) -> None:
        """Refuse an operator that breaks the law this algorithm rests on."""
        why = refusal(self.law, operator)
        if why is not None:
            raise UnsupportedError(f"merge={self.name!r} needs {why}")


def refusal(law: str | None, operator: Operator) -> str | None:
    """Why an operator does not obey a law; None if it does."""
    title = f"{operator.name.split(':')[0]}({', '.join(operator.columns)})"
    if law == "selective" and not operator.selective:
        return (
            f"a combine that is selective (it gives back one of its arguments, as max does), and "
            f"{title} is not: choose 'sba', or leave merge at 'auto'"
        )
    if law == "invertible":
        if operator.invert is None:
            return (
                f"a combine that is invertible, and {title} is not: what was merged cannot be "
                f"taken out again; choose 'sba', or leave merge at 'auto'"
            )
        if any(c.dtype == "float64" for c in operator.components):
            return (
                f"a combine that is invertible exactly, and {title} is over floats, whose "
                f"differences drift: choose 'sba', or leave merge at 'auto'"
            )
    return None


class Fifo:
    """The streaming face: a window of partials of one operator.

    >>> from paneflow.aggregates.extremes import max
    >>> from paneflow.aggregates.values import Kind
    >>> from paneflow.merging.two_stacks import TWO_STACKS
    >>> (operator,) = max("v").operators({"v": Kind.FLOAT})
    >>> window = Fifo(TWO_STACKS, operator)
    >>> for value in (3.0, 1.0, 2.0):
    ...     window.insert(value)
    >>> window.query()
    (3.0,)
    >>> window.evict()
    >>> window.query()
    (2.0,)
    """

    def __init__(self, algorithm: Algorithm, operator: Operator, size: int = 16) -> None:
        algorithm.check(operator)
        self.algorithm = algorithm
        self.operator = operator
        self._insert = kernel(
            operator, "insert_one", _Entry(algorithm, "insert"), algorithm.helpers
        )
        self._evict = kernel(operator, "evict_one", _Entry(algorithm, "evict"), algorithm.helpers)
        self._query = kernel(operator, "query_one", _Entry(algorithm, "query"), algorithm.helpers)
        self._identity = operator.start()
        self.counters = np.zeros(algorithm.counters, np.int64)
        for counter, value in algorithm.initial(size).items():
            self.counters[counter] = value
        self.rings = {name: operator.empty(power(size)) for name in algorithm.rings}
        self.cells = {name: filled(operator, n) for name, n in algorithm.cells}

    def insert(self, *partial: Any) -> None:
        """Add the newest partial, given by its components."""
        if len(self) == self._capacity:
            self._grow()
        self._insert(*self.state, *partial)

    def evict(self) -> None:
        """Drop the oldest partial."""
        if len(self) == 0:
            raise UnsupportedError("evict of an empty window: insert a partial first")
        self._evict(*self.state)

    def query(self) -> tuple[Any, ...]:
        """All partials inside, merged in order; the identity if there are none."""
        merged: tuple[Any, ...] = self._query(*self.state)
        return merged

    def slide(self, size: int, *partial: Any) -> tuple[Any, ...]:
        """Insert the newest, keep the last `size`, and merge them."""
        if len(self) == size:
            self.evict()
        self.insert(*partial)
        return self.query()

    def __len__(self) -> int:
        return int(self.counters[BACK] - self.counters[FRONT])

    @property
    def state(self) -> tuple[Any, ...]:
        """The arguments of the compiled functions."""
        stores = [*self.rings.values(), *self.cells.values()]
        return (self.counters, self._identity, *(column for store in stores for column in store))

    @property
    def stored(self) -> int:
        """How many partials are kept now."""
        return len(self.rings) * len(self) + sum(n for _, n in self.algorithm.cells)

    @property
    def _capacity(self) -> int:
        return len(next(iter(self.rings.values()))[0])

    def _live(self, ring: str) -> Array:
        """The positions that a ring holds."""
        return np.arange(self.counters[FRONT], self.counters[BACK])

    def _grow(self) -> None:
        """Double the rings; positions stay, only where they are kept changes."""
        for name, ring in self.rings.items():
            before, positions = len(ring[0]), self._live(name)
            wider = self.operator.empty(2 * before)
            for new, old in zip(wider, ring, strict=True):
                new[positions & (2 * before - 1)] = old[positions & (before - 1)]
            self.rings[name] = wider


class FifoMerger:
    """The columnar face of a FIFO algorithm: its three functions in one compiled loop."""

    algorithm: ClassVar[Algorithm]
    window: ClassVar[type[Fifo]] = Fifo
    """The streaming window that the loop moves."""

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Refuse an operator that breaks the algorithm's law."""
        cls.algorithm.check(operator)

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self.check(operator)
        self._operator = operator
        self._partials = partials
        self._kernel = kernel(operator, "merge", MergeLoop(self.algorithm), self.algorithm.helpers)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        longest = int((hi - lo).max()) if len(lo) else 1
        window = self.window(self.algorithm, self._operator, longest)
        self._kernel(lo, hi, *window.state, *self._partials, *merged)
        return merged


@dataclass(frozen=True)
class _Entry:
    """Writes the function that Python calls for one of the three."""

    algorithm: Algorithm
    role: str

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        if self.role == "insert":
            partial = "(" + shape.names("x") + ",)"
            return f"""
                def insert_one({state}, {shape.names("x")}):
                    insert({state}, {partial})
                """
        if self.role == "query":
            answer = "r" if self.algorithm.answer is None else shape.fresh("r")
            return f"""
                def query_one({state}):
                    {self.algorithm.ask(shape)}
                    return {answer}
                """
        return f"""
            def {self.role}_one({state}):
                {self.role}({state})
            """


@dataclass(frozen=True)
class MergeLoop:
    """Writes the loop that moves one window over all slices."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def merge(lo, hi, {state}, {shape.names("p")}, {shape.names("o")}):
                start = 0
                end = 0
                for w in range(len(lo)):
                    while start < end and start < lo[w]:
                        evict({state})
                        start += 1
                    if start < lo[w]:
                        start = lo[w]
                        end = lo[w]
                    while end < hi[w]:
                        insert({state}, {shape.load("p", "end")})
                        end += 1
                    {self.algorithm.ask(shape)}
                    {shape.store("o", "w", "r")}
            """


def filled(operator: Operator, n: int) -> Partials:
    """n cells that hold the identity."""
    cells = operator.empty(n)
    for column, identity in zip(cells, operator.start(), strict=True):
        fill(column, identity)
    return cells


def power(n: int) -> int:
    """The least power of two, from 2 on, that is at least n."""
    return 1 << max(n - 1, 1).bit_length()
