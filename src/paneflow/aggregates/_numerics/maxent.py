"""Quantiles from a moment sketch: the density of maximum entropy that has the sketch's moments.

A moment sketch keeps, of any number of values, their count, least and greatest value, the sums
of their first k powers, and the sums of the first k powers of their logarithms. It has a fixed
size and merges by addition. What it cannot say is where exactly the values were: many
distributions have the same moments. Of these, the one of greatest entropy assumes nothing beyond
the moments, and its quantiles are the estimate (Gan, Ding, Tai, Sharan, Bailis: "Moment-based
quantile sketches for efficient high cardinality aggregation queries", VLDB 2018).

How a window is solved:

1. **Scale.** Values are mapped to u in [-1, 1] by their least and greatest, and the power sums
   turned into means of the Chebyshev polynomials T_1(u) ... T_k(u), which tell distributions
   apart where powers look alike. The shift cancels leading digits, the more the further the
   values lie from zero compared with their spread; moments that rounding has spoilt are dropped.
2. **Few distinct values.** If the moments are those of at most k/2 + 1 single points, no density
   fits, but the points and how often each occurs follow from the moments (a Gauss-Lobatto rule:
   the extremes are known, the points between are roots of an orthogonal polynomial). The estimate
   is then the exact quantile, up to rounding.
3. **A density.** Otherwise it has the form exp(l_0 + l_1 T_1(u) + ... + l_k T_k(u)). The
   multipliers l minimise log(integral of exp(...)) - sum of l_i * moment_i, which is convex;
   Newton's method with backtracking finds them. [-1, 1] is cut into cells, finer towards both
   ends, and integrals are sums over cells. Where Newton fails, fewer moments are tried. Before,
   moments are rounded to a grid coarser than their error, so that sums that differ in their last
   bits, because slices were merged in another order, mostly give the very same estimate.
4. **Which domain.** Positive values are solved twice, as they are and as logarithms. The minimum
   above is the mean of -log(density) over the window's values, so of two densities for the same
   values the one with the smaller minimum makes them likelier: it is taken.

With no usable moment the estimate is a straight line between the least and the greatest value.
Estimates never leave that range and never decrease in q. Windows that hold an infinity or NaN
have no moments: their estimate is NaN. Smooth distributions come out within a rank error of one
in a hundred, mostly much closer. What a polynomial of degree k cannot follow comes out badly:
steps in the middle of smooth data, and values crowded together between far outliers on both
sides.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paneflow.compiling import inner, keep

Floats = NDArray[np.float64]

# Divisions by zero give infinities, which the solver's comparisons turn away.
_compiled = inner(error_model="numpy")

CELLS = 128
ATTEMPTS = 32
#: Half the square of Newton's decrement is about the Kullback-Leibler divergence that is left;
#: by Pinsker's inequality 1e-8 leaves an error of 5e-5 in any rank.
CONVERGED = 1e-8
#: The logarithm of the width of the first and the last cell.
NARROWEST = math.log(1.0 - math.cos(math.pi / CELLS))
#: A few roundings of a double.
ROUNDING = 2.0**-51
#: Moments known less well are dropped. Mean and variance are worth keeping even if they are
#: vague; higher moments of which little is known do more harm than good.
LARGEST_ERROR = 2.0**-16
LARGEST_ERROR_OF_VARIANCE = 2.0**-6
#: Moments are rounded to some four times their error, within these bounds.
FINEST_GRID = 2.0**-30
COARSEST_GRID = 2.0**-14


class _Space(NamedTuple):
    """Tables for k moments, and room for the solver, made once for many windows."""

    basis: Floats  # T_i at the middle of each cell, i = 0 .. 2k, one row for each i
    cells: Floats  # the same, one row for each cell
    widths: Floats
    edges: Floats
    coefficients: Floats  # row i: T_i as a polynomial
    powers: Floats
    moments: Floats
    errors: Floats
    log_moments: Floats
    log_errors: Floats
    weights: Floats  # the mass of each cell
    log_weights: Floats
    means: Floats
    hessian: Floats
    step: Floats
    best: Floats
    trial: Floats
    points: Floats  # rows: points, how many values lie at or below each, inner points, masses


@functools.cache
def _tables(k: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    angles = math.pi * (CELLS - 0.5 - np.arange(CELLS)) / CELLS
    basis = np.cos(np.arange(2 * k + 1)[:, None] * angles)
    widths = 2.0 * np.sin(angles) * math.sin(math.pi / (2 * CELLS))
    edges = -np.cos(math.pi * np.arange(CELLS + 1) / CELLS)
    coefficients = np.zeros((k + 1, k + 1))
    for i in range(k + 1):
        coefficients[i, : i + 1] = np.polynomial.chebyshev.cheb2poly([0.0] * i + [1.0])
    return basis, np.ascontiguousarray(basis.T), widths, edges, coefficients


def _space(k: int) -> _Space:
    return _Space(
        *_tables(k),
        powers=np.empty(k + 1),
        moments=np.empty(k + 1),
        errors=np.empty(k + 1),
        log_moments=np.empty(k + 1),
        log_errors=np.empty(k + 1),
        weights=np.empty(CELLS),
        log_weights=np.empty(CELLS),
        means=np.empty(2 * k + 1),
        hessian=np.empty((k + 1, k + 1)),
        step=np.empty(k + 1),
        best=np.empty(k + 1),
        trial=np.empty(k + 1),
        points=np.empty((4, k // 2 + 3)),
    )


@_compiled
def _usable(centre: float, half: float, count: float, errors: Floats) -> int:
    """How many moments survive rounding and overflow; fills in bounds on their errors.

    Looks at the range and number of values only: the answer must not depend on the last bits of
    a sum.
    """
    reach = abs(centre) + half
    # E[T_i(u)] is a sum of terms whose magnitudes add up to at most T_i with all signs positive,
    # taken at this point: each term brings roundings of its own size. Those of a long sum mostly
    # cancel: they grow as the root of its length.
    at = 2.0 * abs(centre) / half + 1.0
    growth = at + math.sqrt(at * at + 1.0)
    error = 0.5 * ROUNDING * (1.0 + 0.25 * math.sqrt(count))
    power = 1.0
    for i in range(1, len(errors)):
        power *= reach
        error *= growth
        allowed = LARGEST_ERROR if i > 2 else LARGEST_ERROR_OF_VARIANCE
        if error > allowed or not 1e-280 < power * count < 1e300:
            return i - 1
        errors[i] = error
    return len(errors) - 1


@_compiled
def _take_moments(
    centre: float,
    half: float,
    count: float,
    sums: Floats,
    k: int,
    coefficients: Floats,
    powers: Floats,
    moments: Floats,
) -> None:
    """Fills in the Chebyshev moments of u = (x - centre) / half."""
    powers[0] = 1.0
    scale = 1.0
    for i in range(1, k + 1):
        scale *= half
        powers[i] = sums[i - 1] / scale / count
    # E[(x/half - c)^i] from E[(x/half)^i]: the binomial theorem, one factor at a time.
    c = centre / half
    for factor in range(1, k + 1):
        for i in range(k, factor - 1, -1):
            powers[i] -= c * powers[i - 1]
    moments[0] = 1.0
    for i in range(1, k + 1):
        total = 0.0
        for j in range(i + 1):
            total += coefficients[i, j] * powers[j]
        moments[i] = min(max(total, -1.0), 1.0)


@_compiled
def _round(k: int, moments: Floats, errors: Floats) -> None:
    """Put moments on grids coarser than their errors, in place.

    A coarse grid would move the estimate more than the error does: there it is left out.
    """
    for i in range(1, k + 1):
        grid = max(2.0 ** math.ceil(math.log2(4.0 * errors[i])), FINEST_GRID)
        if grid <= COARSEST_GRID:
            moments[i] = np.rint(moments[i] / grid) * grid


@_compiled
def _potential(
    multipliers: Floats, k: int, moments: Floats, basis: Floats, widths: Floats, weights: Floats
) -> float:
    """What Newton minimises; fills in the weights of the cells."""
    for j in range(CELLS):
        weights[j] = 0.0
    for i in range(1, k + 1):
        multiplier = multipliers[i]
        for j in range(CELLS):
            weights[j] += multiplier * basis[i, j]
    top = -math.inf
    for j in range(CELLS):
        top = max(top, weights[j])
    total = 0.0
    for j in range(CELLS):
        weights[j] = widths[j] * math.exp(weights[j] - top)
        total += weights[j]
    for j in range(CELLS):
        weights[j] /= total
    value = math.log(total) + top
    for i in range(1, k + 1):
        value -= multipliers[i] * moments[i]
    return float(value)


@_compiled
def _newton_step(
    k: int,
    moments: Floats,
    weights: Floats,
    cells: Floats,
    means: Floats,
    hessian: Floats,
    step: Floats,
) -> float:
    """Fills in the step from where the weights stand; the decrement squared, -1 if there is none.

    The Hessian is the covariance of T_1 .. T_k, and T_i * T_j = (T_{i+j} + T_{i-j}) / 2, so 2k
    means are all it takes.
    """
    for i in range(2 * k + 1):
        means[i] = 0.0
    for j in range(CELLS):
        weight = weights[j]
        for i in range(2 * k + 1):
            means[i] += weight * cells[j, i]
    # Cholesky's decomposition and the forward substitution, row by row.
    decrement = 0.0
    for i in range(1, k + 1):
        residual = moments[i] - means[i]
        for j in range(1, i + 1):
            rest = 0.5 * (means[i + j] + means[i - j]) - means[i] * means[j]
            for m in range(1, j):
                rest -= hessian[i, m] * hessian[j, m]
            if j < i:
                hessian[i, j] = rest / hessian[j, j]
                residual -= hessian[i, j] * step[j]
            elif rest > 1e-13:
                hessian[i, i] = math.sqrt(rest)
            else:
                return -1.0
        step[i] = residual / hessian[i, i]
        decrement += step[i] * step[i]
    for i in range(k, 0, -1):
        for m in range(i + 1, k + 1):
            step[i] -= hessian[m, i] * step[m]
        step[i] /= hessian[i, i]
    return decrement


@_compiled
def _newton(k: int, moments: Floats, weights: Floats, space: _Space) -> tuple[bool, float]:
    """Whether k moments can be met, and the potential there; fills in the weights of the cells."""
    best, trial, step = space.best, space.trial, space.step
    for i in range(1, k + 1):
        best[i] = trial[i] = step[i] = 0.0
    value, decrement, size = math.inf, 0.0, 1.0
    for _ in range(ATTEMPTS):
        reached = _potential(trial, k, moments, space.basis, space.widths, weights)
        if reached > value - 0.25 * size * decrement:
            # Too far: the quadratic that Newton follows does not reach this far.
            size *= 0.5
            if size < 1e-3:
                return False, value
        else:
            value, size = reached, 1.0
            for i in range(1, k + 1):
                best[i] = trial[i]
            decrement = _newton_step(
                k, moments, weights, space.cells, space.means, space.hessian, step
            )
            if 0.0 <= decrement < CONVERGED:
                return True, value
            # Either all mass is in too few cells, or the moments belong to no density at all:
            # none over these cells comes so low.
            if decrement < 0.0 or value < NARROWEST:
                return False, value
        for i in range(1, k + 1):
            trial[i] = best[i] + size * step[i]
    return False, value


@_compiled
def _fewer(k: int, moments: Floats, weights: Floats, space: _Space) -> float:
    """As `_newton`, with as many of the first k moments as can be met; none always can."""
    while True:
        met, value = _newton(k, moments, weights, space)
        if met:
            return value
        k -= 1 if k <= 4 else 2


@_compiled
def _series(coefficients: Floats, degree: int, u: float) -> float:
    """A Chebyshev series at u, by Clenshaw's recurrence."""
    b, b1 = 0.0, 0.0
    for i in range(degree, 0, -1):
        b, b1 = 2.0 * u * b - b1 + coefficients[i], b
    return u * b - b1 + float(coefficients[0])


@_compiled
def _points(
    k: int,
    moments: Floats,
    errors: Floats,
    count: float,
    gram: Floats,
    polynomial: Floats,
    points: Floats,
) -> int:
    """How many points the window consists of, if the moments say so; 0 if they do not.

    With the extremes at u = -1 and 1 taken out by the factor 1 - u^2, what is left is a measure
    on the points between. m points mean that the m-th orthogonal polynomial vanishes on all of
    them: its norm is zero, and they are its roots. Roots of one degree lie between those of the
    next, which makes them easy to find.
    """
    inner, next_inner = points[2], points[3]
    last, scale = 1.0, 1.0
    for m in range((k - 2) // 2 + 1):
        # Row m of the LDL' decomposition of the matrix of products (T_i, T_j).
        norm = 0.0
        for j in range(m + 1):
            rest = 0.5 * (_inner(m + j, moments) + _inner(m - j, moments))
            for i in range(j):
                rest -= gram[m, i] * gram[j, i] * gram[i, i]
            if j < m:
                gram[m, j] = rest / gram[j, j]
            else:
                norm = rest
        # p_m = T_m - (its part along p_0 .. p_{m-1}), as a Chebyshev series.
        polynomial[m] = 1.0
        magnitude = 1.0
        for j in range(m - 1, -1, -1):
            total = 0.0
            for i in range(j + 1, m + 1):
                total -= polynomial[i] * gram[i, j]
            polynomial[j] = total
            magnitude += abs(total)
        # Between the roots of p_{m-1} (and the extremes) lies one root of p_m each.
        for r in range(m):
            next_inner[r] = _root(
                polynomial, m, -1.0 if r == 0 else inner[r - 1], 1.0 if r == m - 1 else inner[r]
            )
        for r in range(m):
            inner[r] = next_inner[r]
        noise = errors[2 * m + 2] * magnitude * magnitude
        if abs(norm) <= noise:
            # Zero, for all that can be told. It means something only if it could have been told
            # from the norm of a continuous distribution, which would go on shrinking at its pace.
            if noise > 1e-2 * last * scale:
                return 0
            return _count_points(m, moments, count, polynomial, points)
        if norm < 0.0:
            return 0
        gram[m, m] = norm
        scale = norm / last
        last = norm
    return 0


@_compiled
def _inner(i: int, moments: Floats) -> float:
    """The mean of (1 - u^2) * T_i(u)."""
    return float(0.5 * moments[i] - 0.25 * (moments[i + 2] + moments[abs(i - 2)]))


@_compiled
def _root(polynomial: Floats, degree: int, low: float, high: float) -> float:
    """The root between low and high, by bisection."""
    rising = _series(polynomial, degree, high) > 0.0
    for _ in range(52):
        middle = 0.5 * (low + high)
        if (_series(polynomial, degree, middle) > 0.0) == rising:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@_compiled
def _count_points(m: int, moments: Floats, count: float, polynomial: Floats, points: Floats) -> int:
    """How many values lie at each of the m inner points and at the extremes."""
    places, at_or_below, inner, masses = points[0], points[1], points[2], points[3]
    inner_mass, inner_mean = 0.0, 0.0
    if m + 2 > count:
        return 0
    for r in range(m):
        # The mass at a point is the mean of the polynomial that is 1 there and 0 at the others.
        # Multiplying by u - p takes T_i to (T_{i+1} + T_{|i-1|}) / 2 - p T_i.
        polynomial[0] = 1.0
        for i in range(1, m + 1):
            polynomial[i] = 0.0
        for other in range(m):
            if other == r:
                continue
            gap = inner[r] - inner[other]
            previous = 0.0
            for i in range(m):
                current = polynomial[i]
                following = polynomial[i + 1]
                raised = previous if i != 1 else 2.0 * previous
                polynomial[i] = (0.5 * (raised + following) - inner[other] * current) / gap
                previous = current
        total = 0.0
        for i in range(m):
            total += polynomial[i] * _inner(i, moments)
        mass = total / (1.0 - inner[r] * inner[r])
        if not 0.0 < mass < 1.0:
            return 0
        masses[r] = mass
        inner_mass += mass
        inner_mean += mass * inner[r]
    below = 0.5 * (1.0 - inner_mass - (moments[1] - inner_mean))
    masses[m] = 0.0
    for r in range(m + 1):
        # There is a value at every point, so at least r + 1 up to here and m + 1 - r above.
        at_or_below[r] = min(max(np.rint(below * count), r + 1.0), count - (m + 1 - r))
        below += masses[r]
    at_or_below[m + 1] = count
    places[0] = -1.0
    for r in range(m):
        places[r + 1] = inner[r]
    places[m + 1] = 1.0
    return m + 2


@_compiled
def _log_mean(
    low: float, centre: float, half: float, size: int, count: float, points: Floats
) -> float:
    """The mean logarithm of values that consist of the points."""
    places, at_or_below = points[0], points[1]
    total, below = 0.0, 0.0
    for r in range(size):
        total += (at_or_below[r] - below) * math.log(max(centre + half * places[r], low))
        below = at_or_below[r]
    return total / count


@_compiled
def _read_points(q: float, count: float, size: int, points: Floats) -> float:
    """The exact quantile of the points, as `quantile` defines it."""
    places, at_or_below = points[0], points[1]
    position = q * (count - 1.0)
    whole = math.floor(position)
    r = 0
    while r < size - 1 and at_or_below[r] <= whole:
        r += 1
    if r == size - 1 or at_or_below[r] > whole + 1.0:
        return float(places[r])
    return float(places[r] + (places[r + 1] - places[r]) * (position - whole))


@_compiled
def _read_density(q: float, weights: Floats, edges: Floats) -> float:
    """Where the distribution function reaches q; mass is spread evenly over its cell."""
    below = 0.0
    for j in range(CELLS):
        if below + weights[j] >= q:
            share = min(max((q - below) / weights[j], 0.0), 1.0) if weights[j] > 0.0 else 0.0
            return float(min(edges[j] + (edges[j + 1] - edges[j]) * share, edges[j + 1]))
        below += weights[j]
    return 1.0


@_compiled
def _line(low: float, high: float, share: float) -> float:
    """A point between two values; halves keep their difference from overflowing."""
    point = 2.0 * (0.5 * low + (0.5 * high - 0.5 * low) * share)
    return min(max(point, low), high)


@_compiled
def _middle(low: float, high: float) -> tuple[float, float]:
    """The centre of a range, and half its length."""
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low


@_compiled
def _solve(
    low: float, high: float, count: float, powers: Floats, logs: Floats, space: _Space
) -> tuple[int, bool]:
    """Solve a window of at least four values that are not all equal.

    Returns the number of points, or 0 if it has a density; and whether these are logarithms. The
    points, or the weights of the cells, are left in the space.
    """
    moments, log_moments = space.moments, space.log_moments
    centre, half = _middle(low, high)
    k = _usable(centre, half, count, space.errors)
    _take_moments(centre, half, count, powers, k, space.coefficients, space.powers, moments)
    # Over less than an octave a logarithm is nearly a straight line and tells nothing new.
    log_k, log_centre, log_half = 0, 0.0, 0.0
    if low > 0.0 and 0.5 * high > low:
        log_centre, log_half = _middle(math.log(low), math.log(high))
        log_k = _usable(log_centre, log_half, count, space.log_errors)
        _take_moments(
            log_centre, log_half, count, logs, log_k, space.coefficients, space.powers, log_moments
        )
        size = _points(
            log_k, log_moments, space.log_errors, count, space.hessian, space.step, space.points
        )
        if size > 0:
            return size, True
    log_mean = log_centre + log_half * log_moments[1] if log_k > 0 else 0.0
    size = _points(k, moments, space.errors, count, space.hessian, space.step, space.points)
    if size > 0:
        # What looks like one point may be many that are small beside the range: the mean of
        # their logarithms tells.
        if log_k == 0:
            return size, False
        error = _log_mean(low, centre, half, size, count, space.points) - log_mean
        if abs(error) < 1e-3 * log_half:
            return size, False
    _round(k, moments, space.errors)
    _round(log_k, log_moments, space.log_errors)
    met, value = _newton(k, moments, space.weights, space)
    if log_k == 0:
        if not met:
            _fewer(k - 1, moments, space.weights, space)
        return 0, False
    log_met, log_value = _newton(log_k, log_moments, space.log_weights, space)
    if met != log_met:
        return 0, log_met
    if not met:
        value = _fewer(k - 1, moments, space.weights, space)
        log_value = _fewer(log_k - 1, log_moments, space.log_weights, space)
    # From u to x the density falls by the factor `half`; from log(x) to x also by the factor x.
    return 0, log_value + math.log(log_half) + log_mean < value + math.log(half)


@keep(nogil=True, error_model="numpy")
def _estimate(
    minimum: Floats,
    maximum: Floats,
    count: Floats,
    powers: Floats,
    logs: Floats,
    qs: Floats,
    out: Floats,
    space: _Space,
) -> None:
    """Fills in the quantiles of every window."""
    for w in range(len(powers)):
        low, high, size = minimum[w], maximum[w], float(count[w])
        centre, half = _middle(low, high)
        log_centre, log_half = 0.0, 0.0
        finite = math.isfinite(low) and math.isfinite(high) and not math.isnan(powers[w, 0])
        # Two values are the extremes; of three, the sum gives the one between. A range that
        # cannot be halved is all but a single value.
        simple = low == high or size <= 3.0 or half == 0.0
        middle = powers[w, 0] - low - high if size == 3.0 else centre
        middle = min(max(middle, low), high)
        points, logarithmic = 0, False
        if finite and not simple:
            points, logarithmic = _solve(low, high, size, powers[w], logs[w], space)
            if logarithmic:
                log_centre, log_half = _middle(math.log(low), math.log(high))
        for j in range(len(qs)):
            q = qs[j]
            if not finite:
                x = math.nan
            elif q <= 0.0 or q >= 1.0:
                x = low if q <= 0.0 else high
            elif simple:
                x = _line(low, middle, 2.0 * q) if q <= 0.5 else _line(middle, high, 2.0 * q - 1.0)
            else:
                if points > 0:
                    u = _read_points(q, size, points, space.points)
                else:
                    weights = space.log_weights if logarithmic else space.weights
                    u = _read_density(q, weights, space.edges)
                x = math.exp(log_centre + log_half * u) if logarithmic else centre + half * u
                # At the extremes arithmetic would be off by a rounding.
                x = low if u <= -1.0 else high if u >= 1.0 else min(max(x, low), high)
            out[w, j] = x


def quantiles(
    minimum: Floats, maximum: Floats, count: Floats, powers: Floats, logs: Floats, qs: Floats
) -> Floats:
    """Estimate the quantiles `qs` of many windows from their moment sketches.

    A window is a row: its least and greatest value, its number of values, and k sums of powers of
    the values and of their logarithms. Logarithms are read only where the least value is positive.

    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 2.0, 3.0, 9.0])
    >>> powers = np.array([[(x**i).sum() for i in range(1, 11)]])
    >>> logs = np.array([[(np.log(x)**i).sum() for i in range(1, 11)]])
    >>> one = np.ones(1)
    >>> quantiles(one * x.min(), one * x.max(), one * 5, powers, logs, np.array([0.5])).round(6)
    array([[2.]])
    """
    # One type of array, so that one compiled function serves all callers.
    minimum, maximum, count, powers, logs, qs = (
        np.ascontiguousarray(a, np.float64) for a in (minimum, maximum, count, powers, logs, qs)
    )
    out = np.empty((len(powers), len(qs)))
    _estimate(minimum, maximum, count, powers, logs, qs, out, _space(powers.shape[1]))
    return out
