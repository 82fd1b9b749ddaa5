"""Deviations of floats that come one by one, for many keys at a time.

`deviation.combine` divides for every event. Here a partial is *open*: (n, origin, total, squares,
scale), with the sums of differences from an origin, and of their squares. Adding an event is two
additions and a multiplication.

Such sums cancel if the origin is far from the mean compared with the spread. So the origin is moved
to the mean whenever the number of events has doubled. Until the next time at most as many events
come as the origin is the mean of. However far they lie from it, at least half of the squares about
the origin are left about the mean: one bit is lost, not more.

What float64 cannot square, and what is not finite, is added by `deviation.combine`. Open and
settled partials have columns of the same types. `opened` and `settled` take numbers or columns.

Plain Python so that it can be compiled into the loops around it.
"""

from __future__ import annotations

from paneflow.aggregates._numerics.deviation import LARGE, SMALL, Partial, combine, lift


def settled(p: Partial) -> Partial:
    """The partial as `deviation` has it."""
    n, origin, total, squares, scale = p
    offset = total / (n + (n == 0))
    mean = origin + offset
    return n, mean, offset - (mean - origin), squares - offset * total, scale


def opened(p: Partial) -> Partial:
    """A partial of `deviation`, to which events can be added."""
    n, mean, rest, squares, scale = p
    total = n * rest
    return n, mean, total, squares + total * rest, scale


def merge(p: Partial, q: Partial) -> Partial:
    """The partial of the values of both."""
    return opened(combine(settled(p), settled(q)))


def absorb(p: Partial, x: float) -> Partial:
    """The partial with another value."""
    n, origin, total, squares, scale = p
    gap = x - origin
    if n == 0 or scale != 1.0 or not (gap == 0.0 or SMALL < abs(gap) < LARGE):
        return _absorb_far(p, x)
    n, total, squares = n + 1, total + gap, squares + gap * gap
    if n & (n - 1) == 0:
        mean = origin + total / n
        by = mean - origin
        squares -= by * (2.0 * total - n * by)
        return n, mean, total - n * by, squares, scale
    return n, origin, total, squares, scale


def _absorb_far(p: Partial, x: float) -> Partial:
    """The same for the first value, and for what `absorb` cannot add."""
    return opened(combine(settled(p), lift(x)))
