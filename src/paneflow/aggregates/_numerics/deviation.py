"""How far floats lie from their mean: partials that stay accurate however they are merged.

A partial is (n, mean, rest, squares, scale): the mean is mean + rest, the rest holding the bits
that do not fit into the mean, and `squares` is the sum of squared deviations from it. Plain sums of
squares would cancel where the mean is large compared with the spread, and so would a mean of 53
bits: 1e6 consecutive numbers from 2**53 on would not move it at all.

`scale` is a power of two by which all values have been multiplied. It is one, except for values
whose squares float64 cannot hold. So a standard deviation is right whenever it is a float64 itself.

Partials are merged by the formula of Chan, Golub and LeVeque, "Updating formulae and a pairwise
algorithm for computing sample variances" (1979). Infinities and NaN have no deviation: they make
mean and squares NaN.

Plain Python so that it can be compiled into the loops around it.
"""

from __future__ import annotations

import math

from paneflow.aggregates.operator import Array

Partial = tuple[int, float, float, float, float]

UP, DOWN = 2.0**600, 2.0**-600
"""Scales of values that are all tiny, and of huge ones."""
TINY, HUGE = 2.0**-300, 2.0**400
"""Below and above which values are scaled."""
SMALL, LARGE = 2.0**-450, 2.0**450
"""Between which the square of a gap has its full precision."""
BLOCK = 1024
"""Events whose deviations are added one by one; blocks are merged."""
FAR = 0.1
"""The share of the squares about some origin that must be left about the mean: if it is less, the
origin was too far from it."""

IDENTITY = (0, 0.0, 0.0, 0.0, 1.0)


def scale_for(size: float) -> float:
    """The scale of values up to a size."""
    if size > HUGE:
        return DOWN
    return UP if size < TINY else 1.0


def lift(x: float) -> Partial:
    """The partial of one value; x - x is zero, but NaN for infinities and NaN."""
    return 1, x + (x - x), 0.0, x - x, 1.0


def combine(p: Partial, q: Partial) -> Partial:
    """The partial of the values of both."""
    if p[0] == 0:
        return q
    if q[0] == 0:
        return p
    gap = (q[1] - p[1]) + (q[2] - p[2])
    if p[4] != q[4] or not (gap == 0.0 or SMALL < abs(gap) < LARGE):
        return _combine_far(p, q)
    n = p[0] + q[0]
    step = gap * (q[0] / n)
    mean = p[1] + step
    # What the mean's rounding takes goes to the rest: to the bit, unless the step is larger than
    # the mean; then the spread is so large that the mean itself is accurate enough.
    rest = p[2] + (step - (mean - p[1]))
    return n, mean, rest, p[3] + q[3] + step * gap * p[0], p[4]


def _combine_far(p: Partial, q: Partial) -> Partial:
    """As `combine`, with a scale that suits both."""
    scale = scale_for(max(_size(p), _size(q)))
    p, q = _rescaled(p, scale), _rescaled(q, scale)
    gap = (q[1] - p[1]) + (q[2] - p[2])
    n = p[0] + q[0]
    step = gap * (q[0] / n)
    mean = p[1] + step
    rest = p[2] + (step - (mean - p[1]))
    return n, mean, rest, p[3] + q[3] + step * gap * p[0], scale


def _size(p: Partial) -> float:
    return max(abs(p[1]), math.sqrt(p[3])) / p[4]


def _rescaled(p: Partial, scale: float) -> Partial:
    if p[4] == scale:
        return p
    # Step by step, because a factor from one scale to another may be out of range.
    back = 1.0 / p[4]
    squares = p[3] * back * back * scale * scale
    return p[0], p[1] * back * scale, p[2] * back * scale, squares, scale


def gather(first: int, end: int, values: Array) -> Partial:
    """The partial of a run of values."""
    p = IDENTITY
    for a in range(first, end, BLOCK):
        b = min(a + BLOCK, end)
        scale, origin, centred = 1.0, values[a], False
        while True:
            # Deviations from an origin and their squares, in four sums each, because an addition
            # waits for the one before it.
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            i = a
            while i + 4 <= b:
                d0 = values[i] * scale - origin
                d1 = values[i + 1] * scale - origin
                d2 = values[i + 2] * scale - origin
                d3 = values[i + 3] * scale - origin
                s0, s1, s2, s3 = s0 + d0, s1 + d1, s2 + d2, s3 + d3
                t0, t1, t2, t3 = t0 + d0 * d0, t1 + d1 * d1, t2 + d2 * d2, t3 + d3 * d3
                i += 4
            while i < b:
                d0 = values[i] * scale - origin
                s0, t0 = s0 + d0, t0 + d0 * d0
                i += 1
            total, squares = (s0 + s1) + (s2 + s3), (t0 + t1) + (t2 + t3)
            offset = total / (b - a)
            left = squares - offset * total
            if left < FAR * squares and not centred:
                # The first value is far from the mean: go out from the mean instead.
                origin, centred = origin + offset, True
            elif scale != 1.0 or SMALL * SMALL < left < LARGE * LARGE:
                break
            else:
                # All values are equal, or some are not finite, or their squares are out of range.
                low, high, none = values[a], values[a], 0.0
                for i in range(a, b):
                    low, high = min(low, values[i]), max(high, values[i])
                    none += values[i] - values[i]
                if low == high or none != 0.0:
                    origin, offset, left = low + none, 0.0, none
                    break
                scale = scale_for(max(abs(low), abs(high)))
                origin, centred = values[a] * scale, False
        mean = origin + offset
        p = combine(p, (b - a, mean, offset - (mean - origin), left, scale))
    return p
