"""SBA by lanes: many windows of one length, by the processor's vector instructions.

A cumulation waits for its last combine, so a vector unit cannot help with one. But let y[i] be
the slices i to i + 63 combined. A window of 64 m slices then is y[i], y[i + 64], y[i + 128], ...,
m of them, and windows that start at neighbouring slices use neighbouring y, never the same one:
64 lanes side by side, each a window of m partials that slides by one. SBA runs in all lanes at
once, and every loop below goes over neighbours that do not wait for each other. The y are made
by combining neighbours, then neighbours of these, and so on: three steps for 64 lanes. All is done
tile by tile in the first cache, and while one tile is worked on the next is fetched.

This takes about four times as many combines as SBA, each a fraction of an instruction, if the
compiler finds vector instructions for them: for the maximum of integers it does, for a user's
logarithm it does not. Nothing but a trial tells, so `lanes_of` makes one, where it may: lanes group
combines in another way, which shows in the last bits of float sums, and a stopwatch must not decide
what comes out. There, lanes are for combines that are a single addition or multiplication.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Code, Operator, Partials
from paneflow.merging.contract import filled

RADICES = {64: (4, 4, 4), 60: (4, 3, 5), 50: (2, 5, 5)}
"""Numbers of lanes, and of how many neighbours each of three steps makes one: powers of two,
and the lengths that people give to windows."""

WORTH_LANES = 500_000
"""Slices from which on a kernel is worth compiling and trying."""

TILE, ASKS = 384, 3
"""Slices whose y are made at a time, few enough to stay in the first cache; and in how many shares
the next of them are asked for meanwhile: a processor remembers only so many wishes at once."""

TRIAL, ROUNDS = 32_768, 5

Slide = Callable[..., None]
"""As `slide_in_lanes` has it, for one operator: the size of windows, partials, merged partials."""


def lanes_of(operator: Operator, size: int, slices: int, otherwise: Slide) -> int | None:
    """How many lanes to use for windows of `size` slices; None if `otherwise` is faster."""
    numbers = all(c.width is None and c.dtype != "object" for c in operator.components)
    if slices < WORTH_LANES or not (operator.compiled and numbers):
        return None
    for lanes in RADICES:
        if size % lanes == 0 and size >= 4 * lanes:
            return lanes if _pays(operator, lanes, otherwise) else None
    return None


def slide_in_lanes(
    operator: Operator, lanes: int, size: int, partials: Partials, merged: Partials
) -> None:
    """All windows of `size` slices, a multiple of the number of lanes, one slice apart."""
    _kernel(operator, lanes)(size, *partials, *merged)


def _pays(operator: Operator, lanes: int, otherwise: Slide) -> bool:
    if not operator.exact:
        return operator.combine.__code__.co_code in _ARITHMETIC
    if (operator.code, lanes) not in _TRIED:
        partials, merged = filled(operator, TRIAL), operator.empty(TRIAL)
        seconds = [
            _seconds(slide, 16 * lanes, *partials, *merged)
            for slide in (_kernel(operator, lanes), otherwise)
        ]
        _TRIED[operator.code, lanes] = seconds[0] < seconds[1]
    return _TRIED[operator.code, lanes]


_ARITHMETIC = {combine.__code__.co_code for combine in (lambda a, b: a + b, lambda a, b: a * b)}
"""Combines for which every compiler finds vector instructions: sums are 1.4 times as fast in lanes,
products 1.5 times; a variance, which branches and divides, would take twice as long."""

_TRIED: dict[tuple[Code, int], bool] = {}


def _seconds(slide: Slide, size: int, *columns: object) -> float:
    slide(size, *columns)
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.perf_counter()
        slide(size, *columns)
        best = min(best, time.perf_counter() - before)
    return best


def _kernel(operator: Operator, lanes: int) -> Slide:
    compiled: Slide = kernel(operator, "slide", _loop(lanes), _helpers(lanes))
    return compiled


@functools.cache
def _loop(lanes: int) -> Callable[[Shape], str]:
    """Chunks as long as a window, as in SBA, tile by tile.

    l: the left-cumulative y of the chunk before, overwritten by this chunk's y behind the reader.
    f: the cumulative y of a tile, behind those of the last `lanes` before it.
    a, b: a tile's slices after the first and the second step on the way to y.
    d, g, u, h: b, f, l and the output from the k-th of a tile on.
    """
    tile = TILE // lanes * lanes

    def text(shape: Shape) -> str:
        here, ahead = (", ".join(map(shape.names, names)) for names in ("bfvz", "dguh"))
        look_ahead = "; ".join(
            shape.view(name, of, "k", f"len({of}0)")
            for name, of in zip("dguh", "bfvz", strict=True)
        )
        share = tile // ASKS

        def ask(k: int) -> str:
            following = f"t + {tile + lanes + k * share}"
            return "; ".join(
                f"soon_read(p{c}, {following}, {share}); "
                f"soon_written(o{c}, max({following} - size, 0), {share})"
                for c in range(len(shape.components))
            )

        return f"""
        def slide(size, {shape.names("p")}, {shape.names("o")}):
            last = len(p0) - {lanes - 1}
            {shape.like("l", "p", "size")}
            {shape.like("a", "p", str(tile + lanes))}
            {shape.like("b", "p", str(tile + lanes))}
            {shape.like("f", "p", str(tile + lanes))}
            s = 0
            while s < last:
                e = min(s + size, last)
                for t in range(s, e, {tile}):
                    w = min({tile}, e - t)
                    {ask(0)}
                    {shape.view("x", "p", "t", f"t + w + {lanes - 1}")}
                    step_0(w, {shape.names("x")}, {shape.names("a")})
                    {ask(1)}
                    step_1(w, {shape.names("a")}, {shape.names("b")})
                    {ask(2)}
                    q = t - s
                    {shape.view("v", "l", "q", "size")}
                    # Windows that end here, those of the first chunk excepted: they began before.
                    c = max(min(w, size - {lanes} - q), 0) if s > 0 else 0
                    {shape.view("z", "o", f"max(t - size + {lanes}, 0)", "len(o0)")}
                    k = 0
                    if t == s:
                        k = min(w, {lanes})
                        begin(min(c, k), k, {here})
                    c = max(c - k, 0)
                    {look_ahead}
                    join(c, {ahead})
                    k += c
                    {look_ahead}
                    extend(w - k, {ahead})
                    {shape.view("g", "f", "w", f"w + {lanes}")}
                    copy(min(w, {lanes}), {shape.names("g")}, {shape.names("f")})
                whole = e - s - size + {lanes}
                if whole > 0:
                    left(e - s, {shape.names("l")})
                    {shape.view("z", "o", "s", "len(o0)")}
                    copy(whole, {shape.names("l")}, {shape.names("z")})
                s = e
        """

    return text


@functools.cache
def _helpers(lanes: int) -> Callable[[Shape], str]:
    """The loops over neighbours. Distances are written as numbers: a compiler must know them."""

    def text(shape: Shape) -> str:
        steps, stride = "", 1
        *before, final = RADICES[lanes]
        for k, radix in enumerate(before):
            cells = [shape.load("x", f"i + {n * stride}") for n in range(radix)]
            stride *= radix
            steps += f"""

        @helper
        def step_{k}(w, {shape.names("x")}, {shape.names("y")}):
            for i in range(w + {lanes - stride}):
                r = {_tree(cells)}
                {shape.store("y", "i", "r")}
        """
        y = _tree([shape.load("x", f"i + {n * stride}") for n in range(final)])
        arrays = ", ".join(shape.names(name) for name in "xflo")
        joined = f"combine({shape.load('l', f'i + {lanes}')}, r)"
        return f"""
        from paneflow.merging.machine.fetching import soon_read, soon_written
        {steps}

        @helper
        def begin(c, w, {arrays}):
            for i in range(w):
                r = {y}
                if i < c:
                    j = {joined}
                    {shape.store("o", "i", "j")}
                {shape.store("l", "i", "r")}
                {shape.store("f", f"i + {lanes}", "r")}


        @helper
        def join(w, {arrays}):
            for i in range(w):
                y = {y}
                r = combine({shape.load("f", "i")}, y)
                j = {joined}
                {shape.store("l", "i", "y")}
                {shape.store("f", f"i + {lanes}", "r")}
                {shape.store("o", "i", "j")}


        @helper
        def extend(w, {arrays}):
            for i in range(w):
                y = {y}
                r = combine({shape.load("f", "i")}, y)
                {shape.store("l", "i", "y")}
                {shape.store("f", f"i + {lanes}", "r")}


        @helper
        def copy(w, {shape.names("x")}, {shape.names("y")}):
            for i in range(w):
                r = {shape.load("x", "i")}
                {shape.store("y", "i", "r")}


        @helper
        def left(w, {shape.names("l")}):
            top = w - {lanes}
            while top >= {lanes}:
                top -= {lanes}
                {shape.view("b", "l", "top", f"top + {2 * lanes}")}
                for i in range({lanes}):
                    r = combine({shape.load("b", "i")}, {shape.load("b", f"i + {lanes}")})
                    {shape.store("b", "i", "r")}
            for i in range(top):
                r = combine({shape.load("l", "i")}, {shape.load("l", f"i + {lanes}")})
                {shape.store("l", "i", "r")}
        """

    return text


def _tree(cells: list[str]) -> str:
    """Neighbours combined in order, in as few levels as there can be."""
    if len(cells) == 1:
        return cells[0]
    half = (len(cells) + 1) // 2
    return f"combine({_tree(cells[:half])}, {_tree(cells[half:])})"
