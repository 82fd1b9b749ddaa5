"""An aggregate of your own: the deepest fall of a price within each window.

No built-in aggregate knows it, and it need not be computed from all events of a window: what has
to be remembered of some events is their highest price, their lowest, and the deepest fall among
them. Two such notes make one: the deepest fall is in the first part, in the second, or from the
high of the first to the low of the second. With `A.define` that is all there is to say; it is
compiled, and merged from slices like a built-in one. Run it with
`python examples/own_aggregate.py`.
"""

from __future__ import annotations

import math

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W

Note = tuple[float, float, float]
"""The highest price, the lowest, and the deepest fall."""


def of_one(price: float) -> Note:
    """What to remember of one event."""
    return price, price, 0.0


def of_both(a: Note, b: Note) -> Note:
    """What to remember of two stretches of events, a being earlier."""
    return max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2], a[0] - b[1])


def fall_of(note: Note) -> float:
    """The result."""
    return note[2]


NOTHING: Note = (-math.inf, math.inf, 0.0)

# The earlier high counts against the later low, so the order matters: it is not commutative.
deepest_fall = A.define(
    lift=of_one,
    combine=of_both,
    lower=fall_of,
    identity=NOTHING,
    commutative=False,
    name="deepest_fall",
)

#  price 9 |           ●
#        8 |     ●
#        7 |              ●
#        6 |        ●              ●
#        5 |  ●              ●
#        3 |                    ●
#  minute     1  2  3  4  5  6  7  8
#                [-----------)  from 8 to 6, or from 9 to 7: 2
#                      [-----------)  from 9 to 3: 6
#                            [-----------)  from 5 to 3: 2
PRICES = pa.table(
    {
        "minute": [1, 2, 3, 4, 5, 6, 7, 8],
        "price": [5.0, 8.0, 6.0, 9.0, 7.0, 5.0, 3.0, 6.0],
    }
)

QUERY = pf.Query(
    W.sliding(4, 2), {"fall": deepest_fall("price"), "prices": A.collect("price")}, time="minute"
)


def main() -> None:
    """Print the deepest falls, and what happens if the law is stated wrongly."""
    for row in QUERY.over(PRICES).to_pylist():
        minutes = f"minutes {row['start']} to {row['end'] - 1}"
        prices = ", ".join(f"{price:g}" for price in row["prices"])
        print(f"{minutes:16} {prices:20} deepest fall {row['fall']:g}")

    print("\nDeclared commutative, it is refused:")
    try:
        A.define(of_one, of_both, fall_of, NOTHING, commutative=True, name="deepest_fall")
    except pf.QueryError as error:
        print(error)


if __name__ == "__main__":
    main()
