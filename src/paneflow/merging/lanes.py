"""SBA by lanes: many windows of one length, by the processor's vector instructions.

A cumulation waits for its last combine, so a vector unit cannot help with one. But let y[i] be
the slices i to i + 63 combined. A window of 64 m slices then is y[i], y[i + 64], y[i + 128], ...,
m of them, and windows that start at neighbouring slices use neighbouring y, never the same one:
64 lanes side by side, each a window of m partials that slides by one. SBA runs in all lanes at
once, and every loop below goes over neighbours that do not wait for each other. The y are made
by combining neighbours, then neighbours of these, and so on: three loops for 64 lanes.

This takes about four times as many combines as SBA, each a fraction of an instruction, if the
compiler finds vector instructions for them: for the maximum of integers it does, for a user's
logarithm it does not. Nothing but a trial tells, so `lanes_of` makes one.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Code, Operator, Partials
from paneflow.merging.contract import filled

RADICES = {64: (4, 4, 4), 60: (4, 3, 5), 50: (2, 5, 5)}
"""Numbers of lanes, and of how many neighbours each step makes one: powers of two, and the
lengths that people give to windows."""

WORTH_LANES = 500_000
"""Slices from which on a kernel is worth compiling and trying."""

TILE = 2048
"""Slices whose y are made at a time: few enough to stay in the first cache."""

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
    if (operator.code, lanes) not in _TRIED:
        partials, merged = filled(operator, TRIAL), operator.empty(TRIAL)
        seconds = [
            _seconds(slide, 16 * lanes, *partials, *merged)
            for slide in (_kernel(operator, lanes), otherwise)
        ]
        _TRIED[operator.code, lanes] = seconds[0] < seconds[1]
    return _TRIED[operator.code, lanes]


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
    """
    tile = TILE // lanes * lanes

    def text(shape: Shape) -> str:
        source = "x"
        steps = []
        for k in range(len(RADICES[lanes])):
            target = "ab"[k % 2]
            steps.append(f"step_{k}(w, {shape.names(source)}, {shape.names(target)})")
            source = target
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
                    {shape.view("x", "p", "t", f"t + w + {lanes - 1}")}
                    {"; ".join(steps)}
                    if t == s:
                        start(w, {shape.names(source)}, {shape.names("f")})
                    else:
                        extend(w, {shape.names(source)}, {shape.names("f")})
                    q = t - s
                    if s > 0:
                        c = min(w, size - {lanes} - q)
                        {shape.view("v", "l", f"q + {lanes}", "size")}
                        {shape.view("z", "o", f"t - size + {lanes}", "len(o0)")}
                        join(c, {shape.names("v")}, {shape.names("f")}, {shape.names("z")})
                    {shape.view("v", "l", "q", "q + w")}
                    copy(w, {shape.names(source)}, {shape.names("v")})
                    {shape.view("v", "f", "w", f"w + {lanes}")}
                    copy(min(w, {lanes}), {shape.names("v")}, {shape.names("f")})
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
        for k, radix in enumerate(RADICES[lanes]):
            cells = [shape.load("x", f"i + {n * stride}") for n in range(radix)]
            stride *= radix
            steps += f"""

        @helper
        def step_{k}(w, {shape.names("x")}, {shape.names("y")}):
            for i in range(w + {lanes - stride}):
                r = {_tree(cells)}
                {shape.store("y", "i", "r")}
        """
        further = shape.load("f", "i")
        return f"""{steps}

        @helper
        def start(w, {shape.names("y")}, {shape.names("f")}):
            for i in range(min(w, {lanes})):
                r = {shape.load("y", "i")}
                {shape.store("f", f"i + {lanes}", "r")}
            for i in range(w - {lanes}):
                r = combine({shape.load("f", f"i + {lanes}")}, {shape.load("y", f"i + {lanes}")})
                {shape.store("f", f"i + {2 * lanes}", "r")}


        @helper
        def extend(w, {shape.names("y")}, {shape.names("f")}):
            for i in range(w):
                r = combine({further}, {shape.load("y", "i")})
                {shape.store("f", f"i + {lanes}", "r")}


        @helper
        def join(w, {shape.names("l")}, {shape.names("f")}, {shape.names("o")}):
            for i in range(w):
                r = combine({shape.load("l", "i")}, {shape.load("f", f"i + {lanes}")})
                {shape.store("o", "i", "r")}


        @helper
        def copy(w, {shape.names("x")}, {shape.names("y")}):
            for i in range(w):
                r = {shape.load("x", "i")}
                {shape.store("y", "i", "r")}


        @helper
        def left(w, {shape.names("l")}):
            for j in range(w - {lanes}):
                i = w - {lanes + 1} - j
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
