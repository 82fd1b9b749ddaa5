"""SBA: the sequential boundary aggregator.

Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of Aggregations over Sliding
Windows", KDD 2021, section 4: slices are grouped into chunks; a window is
the left-cumulative aggregate of the chunk it starts in, combined with the cumulative aggregate
of what follows the boundary. At most three combines per slide, amortised, whatever the range.

The paper's chunks are about half a window, so that a second thread has time for the left
cumulation. One thread alone does best with chunks of a whole window: then a window has two parts
instead of three, which saves one combine per slide.

Windows over a table are not all of one length (slices without events are absent), so there a
chunk is not a fixed number of slices: a new boundary is set at the end of the first window that
starts at or behind the last boundary. With equal lengths these are the chunks of the paper.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import Algorithm, Merger
from paneflow.merging.machine.lanes import lanes_of, slide_in_lanes
from paneflow.merging.machine.spare import empty


def text(shape: Shape, state: str) -> str:
    """Ring a: left-cumulative in whole chunks, partials behind; b: cumulative behind, the answer.

    m[2]: chunk size; m[3]: start of the chunk that is being filled; m[4]: end of the chunk in
    which the window starts.
    """
    cumulate = shape.merge_at("a", "k & mask", shape.load("a", "k & mask"), "r")
    return f"""
        @in_place
        def close({state}):
            mask = len(a0) - 1
            r = {shape.load("a", "(m[1] - 1) & mask")}
            for k in range(m[1] - 2, max(m[3], m[0]) - 1, -1):
                {cumulate}
            m[3] = m[1]
            {shape.store("b", "0", "identity")}


        @in_place
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1
            if m[1] - m[3] < m[2]:
                {shape.merge_at("b", "0", shape.load("b", "0"), "p")}
            else:
                close({state})


        @in_place
        def evict({state}):
            m[0] += 1
            if m[0] == m[4]:
                m[4] += m[2]


        @in_place
        def query({state}):
            mask = len(a0) - 1
            if m[0] > m[3]:
                # The window has become shorter than a chunk: the boundary comes early.
                close({state})
                m[4] = m[1] if m[0] < m[1] else m[1] + m[2]
            if m[0] == m[3]:
                {shape.store("b", "1", shape.load("b", "0"))}
                return
            r = {shape.load("a", "m[0] & mask")}
            for k in range(m[4], m[3], m[2]):
                {shape.merge_at("b", "1", "r", shape.load("a", "k & mask"))}
            if m[1] > m[3]:
                {shape.merge_at("b", "1", "r", shape.load("b", "0"))}
            else:
                {shape.store("b", "1", "r")}
        """


SBA = Algorithm(
    "sba",
    text,
    rings=("a",),
    cells=(("b", 2),),
    counters=5,
    initial=lambda size: {2: size, 4: size},
    answer=("b", 1),
)


def ranges_loop(shape: Shape) -> str:
    """Left-cumulative up to the boundary, cumulative behind it; room for the left is given."""
    return f"""
        def merge(lo, hi, identity, {shape.names("p")}, {shape.names("left")}, {shape.names("o")}):
            boundary = 0
            end = 0
            start = 0
            cumulative = identity
            for w in range(len(lo)):
                if lo[w] >= boundary:
                    start = lo[w]
                    boundary = hi[w]
                    end = boundary
                    p = identity
                    for i in range(boundary - 1, start - 1, -1):
                        p = combine({shape.load("p", "i")}, p)
                        {shape.store("left", "i - start", "p")}
                    {shape.store("o", "w", "p")}
                    cumulative = identity
                else:
                    for i in range(end, hi[w]):
                        cumulative = combine(cumulative, {shape.load("p", "i")})
                    end = hi[w]
                    p = combine({shape.load("left", "lo[w] - start")}, cumulative)
                    {shape.store("o", "w", "p")}
        """


def slide_helpers(shape: Shape) -> str:
    """Cumulate a chunk from the right, from the left, and join the halves of windows."""
    return f"""

        @helper
        def left({shape.names("p")}, {shape.names("l")}):
            r = {shape.load("p", "len(p0) - 1")}
            {shape.store("l", "len(p0) - 1", "r")}
            for i in range(len(p0) - 2, -1, -1):
                r = combine({shape.load("p", "i")}, r)
                {shape.store("l", "i", "r")}


        @helper
        def right({shape.names("p")}, {shape.names("f")}):
            r = {shape.load("p", "0")}
            {shape.store("f", "0", "r")}
            for i in range(1, len(p0)):
                r = combine(r, {shape.load("p", "i")})
                {shape.store("f", "i", "r")}


        @helper
        def join({shape.names("l")}, {shape.names("f")}, {shape.names("o")}):
            for i in range(len(o0)):
                r = combine({shape.load("l", "i + 1")}, {shape.load("f", "i")})
                {shape.store("o", "i", "r")}
        """


def slide_loop(shape: Shape) -> str:
    """Windows of `size` slices, one slice apart, two chunks at a time.

    A cumulation waits for its last combine before the next can begin. The two chunks and the two
    directions are four cumulations that do not wait for each other, so a core works on them side
    by side; joining the halves of the windows is vectorised.
    """
    return f"""
        def slide(size, {shape.names("p")}, {shape.names("o")}):
            n = len(p0)
            {shape.like("l", "p", "size")}
            {shape.like("m", "p", "size")}
            {shape.like("k", "p", "size")}
            {shape.like("f", "p", "size")}
            {shape.like("g", "p", "size")}
            {shape.view("a", "p", "0", "size")}
            left({shape.names("a")}, {shape.names("l")})
            r = {shape.load("l", "0")}
            {shape.store("o", "0", "r")}
            s = size
            while s + 2 * size <= n:
                {shape.view("a", "p", "s", "s + size")}
                {shape.view("b", "p", "s + size", "s + 2 * size")}
                ra = {shape.load("a", "0")}
                rb = {shape.load("b", "0")}
                la = {shape.load("a", "size - 1")}
                lb = {shape.load("b", "size - 1")}
                {shape.store("f", "0", "ra")}
                {shape.store("g", "0", "rb")}
                {shape.store("m", "size - 1", "la")}
                {shape.store("k", "size - 1", "lb")}
                for i in range(1, size):
                    ra = combine(ra, {shape.load("a", "i")})
                    {shape.store("f", "i", "ra")}
                    rb = combine(rb, {shape.load("b", "i")})
                    {shape.store("g", "i", "rb")}
                    j = size - 1 - i
                    la = combine({shape.load("a", "j")}, la)
                    {shape.store("m", "j", "la")}
                    lb = combine({shape.load("b", "j")}, lb)
                    {shape.store("k", "j", "lb")}
                {shape.view("w", "o", "s - size + 1", "s")}
                join({shape.names("l")}, {shape.names("f")}, {shape.names("w")})
                {shape.store("o", "s", "la")}
                {shape.view("w", "o", "s + 1", "s + size")}
                join({shape.names("m")}, {shape.names("g")}, {shape.names("w")})
                s += 2 * size
                {shape.store("o", "s - size", "lb")}
                for i in range(size):
                    r = {shape.load("k", "i")}
                    {shape.store("l", "i", "r")}
            while s < n:
                e = min(s + size, n)
                {shape.view("a", "p", "s", "e")}
                right({shape.names("a")}, {shape.names("f")})
                {shape.view("w", "o", "s - size + 1", "min(s, e - size + 1)")}
                join({shape.names("l")}, {shape.names("f")}, {shape.names("w")})
                if e - s == size:
                    left({shape.names("a")}, {shape.names("l")})
                    r = {shape.load("l", "0")}
                    {shape.store("o", "s", "r")}
                s = e
        """


class Sba(Merger):
    """Merges by boundaries, in amortised constant time per window."""

    name: ClassVar[str] = "sba"

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self._operator = operator
        self._partials = partials
        self._kernel = kernel(operator, "merge", ranges_loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        size = _uniform(lo, hi)
        if size is not None:
            return self.slide(size, int(lo[0]), int(hi[-1]))
        merged = self._operator.empty(len(lo))
        # Made here: what makes arrays is a third of what a kernel takes to compile.
        left = self._operator.empty(int((hi - lo).max(initial=1)))
        self._kernel(lo, hi, self._operator.start(), *self._partials, *left, *merged)
        return merged

    def slide(self, size: int, start: int = 0, end: int | None = None) -> Partials:
        """All windows of `size` slices within a stretch of them, one slice apart."""
        stretch = tuple(column[start:end] for column in self._partials)
        merged = tuple(
            empty((max(len(column) - size + 1, 0), *column.shape[1:]), column.dtype)
            for column in stretch
        )
        if not len(merged[0]):
            return merged
        slide = kernel(self._operator, "slide", slide_loop, slide_helpers)
        lanes = lanes_of(self._operator, size, len(stretch[0]), slide)
        if lanes is not None:
            slide_in_lanes(self._operator, lanes, size, stretch, merged)
        else:
            slide(size, *stretch, *merged)
        return merged


def _uniform(lo: Array, hi: Array) -> int | None:
    """The size of windows that are all equally long and one slice apart; None if they are not."""
    if len(lo) < 2 or hi[-1] - lo[-1] != hi[0] - lo[0] or lo[-1] - lo[0] != len(lo) - 1:
        return None
    size = int(hi[0] - lo[0])
    same = size > 1 and bool((hi - lo == size).all()) and bool((np.diff(lo) == 1).all())
    return size if same else None
