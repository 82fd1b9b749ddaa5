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
   The others are rounded to a grid coarser than their error. So sums that differ in their last
   bits, because slices were merged in another order, all but surely give the very same estimate.
2. **Few distinct values.** If the moments are those of at most k/2 + 1 single points, no density
   fits, but the points and how often each occurs follow from the moments (a Gauss-Lobatto rule:
   the extremes are known, the points between are roots of an orthogonal polynomial). The estimate
   is then the exact quantile, up to the grid.
3. **A density.** Otherwise it has the form exp(l_0 + l_1 T_1(u) + ... + l_k T_k(u)). The
   coefficients minimise log(integral of exp(...)) - sum of l_i * moment_i, which is convex;
   Newton's method with backtracking finds them. [-1, 1] is cut into cells, finer towards both
   ends, and integrals are sums over cells. Where Newton fails, fewer moments are tried.
4. **Which domain.** Positive values are solved twice, as they are and as logarithms. The minimum
   above is the mean of -log(density) over the window's values, so of two densities for the same
   values the one with the smaller minimum makes them likelier: it is taken.

With no usable moment the estimate is a straight line between the least and the greatest value.
Estimates never leave that range and never decrease in q. Windows that hold an infinity or NaN
have no moments: their estimate is NaN.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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
    exponents: Floats
    weights: Floats  # the mass of each cell
    other_weights: Floats
    means: Floats
    hessian: Floats
    step: Floats
    best: Floats
    trial: Floats
    points: Floats  # rows: points, how many values lie at or below each, inner points, masses


@njit(cache=True, nogil=True, error_model="numpy")
def _space(k: int) -> _Space:
    basis = np.empty((2 * k + 1, CELLS))
    widths = np.empty(CELLS)
    edges = np.empty(CELLS + 1)
    for j in range(CELLS):
        angle = math.pi * (CELLS - j - 0.5) / CELLS
        widths[j] = 2.0 * math.sin(angle) * math.sin(math.pi / (2 * CELLS))
        for i in range(2 * k + 1):
            basis[i, j] = math.cos(i * angle)
    for j in range(CELLS + 1):
        edges[j] = -math.cos(math.pi * j / CELLS)
    coefficients = np.zeros((k + 1, k + 1))
    coefficients[0, 0] = 1.0
    coefficients[1, 1] = 1.0
    for i in range(2, k + 1):
        for j in range(k + 1):
            coefficients[i, j] = -coefficients[i - 2, j]
        for j in range(k):
            coefficients[i, j + 1] += 2.0 * coefficients[i - 1, j]
    return _Space(
        basis,
        basis.T.copy(),
        widths,
        edges,
        coefficients,
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty(CELLS),
        np.empty(CELLS),
        np.empty(CELLS),
        np.empty(2 * k + 1),
        np.empty((k + 1, k + 1)),
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty(k + 1),
        np.empty((4, k // 2 + 3)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _take_moments(
    centre: float, half: float, count: float, sums: Floats, k: int, space: _Space, moments: Floats
) -> None:
    """Chebyshev moments of u = (x - centre) / half."""
    powers = space.powers
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
            total += space.coefficients[i, j] * powers[j]
        moments[i] = min(max(total, -1.0), 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _round(k: int, moments: Floats, errors: Floats) -> None:
    """Put moments on grids coarser than their errors, in place.

    A coarse grid would move the estimate more than the error does: there it is left out.
    """
    for i in range(1, k + 1):
        grid = max(2.0 ** math.ceil(math.log2(4.0 * errors[i])), FINEST_GRID)
        if grid <= COARSEST_GRID:
            moments[i] = np.rint(moments[i] / grid) * grid


@njit(cache=True, nogil=True, error_model="numpy")
def _potential(multipliers: Floats, k: int, moments: Floats, space: _Space) -> float:
    """What Newton minimises; fills in the weights of the cells."""
    exponents, weights = space.exponents, space.weights
    exponents[:] = 0.0
    for i in range(1, k + 1):
        multiplier = multipliers[i]
        for j in range(CELLS):
            exponents[j] += multiplier * space.basis[i, j]
    top = exponents.max()
    total = 0.0
    for j in range(CELLS):
        weights[j] = space.widths[j] * math.exp(exponents[j] - top)
        total += weights[j]
    for j in range(CELLS):
        weights[j] /= total
    value = math.log(total) + top
    for i in range(1, k + 1):
        value -= multipliers[i] * moments[i]
    return float(value)


@njit(cache=True, nogil=True, error_model="numpy")
def _newton_step(k: int, moments: Floats, space: _Space) -> float:
    """Fills in the step from where the weights stand; the decrement squared, -1 if there is none.

    The Hessian is the covariance of T_1 .. T_k, and T_i * T_j = (T_{i+j} + T_{i-j}) / 2, so 2k
    means are all it takes.
    """
    means, hessian, step = space.means, space.hessian, space.step
    means[: 2 * k + 1] = 0.0
    for j in range(CELLS):
        weight = space.weights[j]
        for i in range(2 * k + 1):
            means[i] += weight * space.cells[j, i]
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


@njit(cache=True, nogil=True, error_model="numpy")
def _newton(k: int, moments: Floats, space: _Space) -> tuple[bool, float]:
    """Whether k moments can be met, and the potential there; leaves the weights of the cells."""
    best, trial, step = space.best, space.trial, space.step
    best[:] = 0.0
    value = _potential(best, k, moments, space)
    attempts = ATTEMPTS
    while attempts > 0:
        decrement = _newton_step(k, moments, space)
        if decrement < 0.0:
            return False, value
        if decrement < CONVERGED:
            return True, value
        if value < NARROWEST:
            # No density over these cells comes so low: the moments belong to none.
            return False, value
        size = 1.0
        while True:
            for i in range(1, k + 1):
                trial[i] = best[i] + size * step[i]
            reached = _potential(trial, k, moments, space)
            attempts -= 1
            if reached <= value - 0.25 * size * decrement:
                break
            size *= 0.5
            if size < 1e-3:
                return False, value
        best[:] = trial
        value = reached
    return False, value


@njit(cache=True, nogil=True, error_model="numpy")
def _fewer(k: int, moments: Floats, space: _Space) -> float:
    """The weights of the cells from as many of the first k moments as can be met."""
    while k > 0:
        met, value = _newton(k, moments, space)
        if met:
            return value
        k -= 1 if k <= 4 else 2
    return _newton(0, moments, space)[1]


@njit(cache=True, nogil=True, error_model="numpy")
def _density(
    k: int, half: float, log_k: int, log_centre: float, log_half: float, space: _Space
) -> bool:
    """The weights of the cells in the domain that fits; whether it is that of logarithms."""
    met, value = _newton(k, space.moments, space)
    if log_k == 0:
        if not met:
            _fewer(k - 1, space.moments, space)
        return False
    space.other_weights[:] = space.weights
    log_met, log_value = _newton(log_k, space.log_moments, space)
    if not met and not log_met:
        value = _fewer(k - 1, space.moments, space)
        space.other_weights[:] = space.weights
        log_value = _fewer(log_k - 1, space.log_moments, space)
    if met == log_met:
        # From densities of u to densities of x: over [low, high] they are flatter by `half`. The
        # density of log(x) is moreover x times that of x.
        log_value += math.log(log_half) + log_centre + log_half * space.log_moments[1]
        log_met = log_value < value + math.log(half)
    if not log_met:
        space.weights[:] = space.other_weights
    return log_met


@njit(cache=True, nogil=True, error_model="numpy")
def _series(coefficients: Floats, degree: int, u: float) -> float:
    """A Chebyshev series at u, by Clenshaw's recurrence."""
    b, b1 = 0.0, 0.0
    for i in range(degree, 0, -1):
        b, b1 = 2.0 * u * b - b1 + coefficients[i], b
    return u * b - b1 + float(coefficients[0])


@njit(cache=True, nogil=True, error_model="numpy")
def _points(k: int, moments: Floats, errors: Floats, count: float, space: _Space) -> int:
    """How many points the window consists of, if the moments say so; 0 if they do not.

    With the extremes at u = -1 and 1 taken out by the factor 1 - u^2, what is left is a measure
    on the points between. m points mean that the m-th orthogonal polynomial vanishes on all of
    them: its norm is zero, and they are its roots. Roots of one degree lie between those of the
    next, which makes them easy to find.
    """
    points, inner = space.points[0], space.points[2]
    gram, polynomial = space.hessian, space.step
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
            points[r] = _root(
                polynomial, m, -1.0 if r == 0 else inner[r - 1], 1.0 if r == m - 1 else inner[r]
            )
        inner[:m] = points[:m]
        noise = errors[2 * m + 2] * magnitude * magnitude
        if abs(norm) <= noise:
            # Zero, for all that can be told. It means something only if it could have been told
            # from the norm of a continuous distribution, which would go on shrinking at its pace.
            if noise > 1e-2 * last * scale:
                return 0
            return _count_points(m, moments, count, space)
        if norm < 0.0:
            return 0
        gram[m, m] = norm
        scale = norm / last
        last = norm
    return 0


@njit(cache=True, nogil=True, error_model="numpy")
def _inner(i: int, moments: Floats) -> float:
    """The mean of (1 - u^2) * T_i(u)."""
    return float(0.5 * moments[i] - 0.25 * (moments[i + 2] + moments[abs(i - 2)]))


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _count_points(m: int, moments: Floats, count: float, space: _Space) -> int:
    """How many values lie at each of the m inner points and at the extremes."""
    points, at_or_below = space.points[0], space.points[1]
    inner, masses = space.points[2], space.points[3]
    polynomial = space.step
    inner_mass, inner_mean = 0.0, 0.0
    if m + 2 > count:
        return 0
    for r in range(m):
        # The mass at a point is the mean of the polynomial that is 1 there and 0 at the others.
        # Multiplying by u - p takes T_i to (T_{i+1} + T_{|i-1|}) / 2 - p T_i.
        polynomial[: m + 1] = 0.0
        polynomial[0] = 1.0
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
    points[0] = -1.0
    points[1 : m + 1] = inner[:m]
    points[m + 1] = 1.0
    return m + 2


@njit(cache=True, nogil=True, error_model="numpy")
def _log_mean(
    low: float, centre: float, half: float, size: int, count: float, space: _Space
) -> float:
    """The mean logarithm of values that consist of the points."""
    points, at_or_below = space.points[0], space.points[1]
    total, below = 0.0, 0.0
    for r in range(size):
        total += (at_or_below[r] - below) * math.log(max(centre + half * points[r], low))
        below = at_or_below[r]
    return total / count


@njit(cache=True, nogil=True, error_model="numpy")
def _read_points(q: float, count: float, size: int, space: _Space) -> float:
    """The exact quantile of the points, as `quantile` defines it."""
    points, at_or_below = space.points[0], space.points[1]
    position = q * (count - 1.0)
    whole = math.floor(position)
    r = 0
    while r < size - 1 and at_or_below[r] <= whole:
        r += 1
    if r == size - 1 or at_or_below[r] > whole + 1.0:
        return float(points[r])
    return float(points[r] + (points[r + 1] - points[r]) * (position - whole))


@njit(cache=True, nogil=True, error_model="numpy")
def _read_density(q: float, weights: Floats, edges: Floats) -> float:
    """Where the distribution function reaches q; mass is spread evenly over its cell."""
    below = 0.0
    for j in range(CELLS):
        if below + weights[j] >= q:
            share = min(max((q - below) / weights[j], 0.0), 1.0) if weights[j] > 0.0 else 0.0
            return float(min(edges[j] + (edges[j + 1] - edges[j]) * share, edges[j + 1]))
        below += weights[j]
    return 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _line(low: float, high: float, share: float) -> float:
    """A point between two values; halves keep their difference from overflowing."""
    point = 2.0 * (0.5 * low + (0.5 * high - 0.5 * low) * share)
    return min(max(point, low), high)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(
    low: float,
    high: float,
    count: float,
    powers: Floats,
    logs: Floats,
    qs: Floats,
    out: Floats,
    space: _Space,
) -> None:
    """Fills in the quantiles of one window of several values that are not all equal."""
    centre, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    k = _usable(centre, half, count, space.errors)
    _take_moments(centre, half, count, powers, k, space, space.moments)
    size, log_k, log_centre, log_half = 0, 0, 0.0, 0.0
    # Over less than an octave a logarithm is nearly a straight line and tells nothing new.
    if low > 0.0 and 0.5 * high > low:
        log_low, log_high = math.log(low), math.log(high)
        log_centre, log_half = 0.5 * (log_low + log_high), 0.5 * (log_high - log_low)
        log_k = _usable(log_centre, log_half, count, space.log_errors)
        _take_moments(log_centre, log_half, count, logs, log_k, space, space.log_moments)
        size = _points(log_k, space.log_moments, space.log_errors, count, space)
    logarithmic = size > 0
    if size == 0:
        size = _points(k, space.moments, space.errors, count, space)
        if size > 0 and log_k > 0:
            # What looks like one point may be many that are small beside the range.
            mean = _log_mean(low, centre, half, size, count, space)
            if abs(mean - log_centre - log_half * space.log_moments[1]) > 1e-3 * log_half:
                size = 0
    if size == 0:
        _round(k, space.moments, space.errors)
        _round(log_k, space.log_moments, space.log_errors)
        logarithmic = _density(k, half, log_k, log_centre, log_half, space)
    for j in range(len(qs)):
        q = qs[j]
        if q <= 0.0 or q >= 1.0:
            out[j] = low if q <= 0.0 else high
            continue
        if size > 0:
            u = _read_points(q, count, size, space)
        else:
            u = _read_density(q, space.weights, space.edges)
        x = math.exp(log_centre + log_half * u) if logarithmic else centre + half * u
        # At the extremes arithmetic would be off by a rounding.
        out[j] = low if u <= -1.0 else high if u >= 1.0 else min(max(x, low), high)


@njit(cache=True, nogil=True, error_model="numpy")
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
    n, k = powers.shape
    out = np.empty((n, len(qs)))
    space = _space(k)
    for w in range(n):
        low, high, size = minimum[w], maximum[w], float(count[w])
        if not (math.isfinite(low) and math.isfinite(high)) or math.isnan(powers[w, 0]):
            out[w] = math.nan
            continue
        if low == high:
            out[w] = low
            continue
        if size <= 3.0 or 0.5 * high == 0.5 * low:
            # Two values are the extremes; of three, the sum gives the one between.
            middle = powers[w, 0] - low - high if size == 3.0 else _line(low, high, 0.5)
            middle = min(max(middle, low), high)
            for j in range(len(qs)):
                share = 2.0 * qs[j]
                out[w, j] = (
                    _line(low, middle, share) if share <= 1.0 else _line(middle, high, share - 1.0)
                )
            continue
        _solve(low, high, size, powers[w], logs[w], qs, out[w], space)
    return out
