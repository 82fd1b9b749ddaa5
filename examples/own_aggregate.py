"""An aggregate of your own: the largest drop of a price within each window.

It does not have to be computed from all events of a window. Of a stretch of events it is enough
to know the highest price, the lowest price and the largest drop. Two neighbouring stretches
combine into one: the largest drop is in the first, in the second, or from the high of the first
to the low of the second. `A.define` needs nothing else; the functions are compiled, and their
results are merged from slices like those of a built-in aggregate. Run it with `python
examples/own_aggregate.py`.
"""

from __future__ import annotations

import math

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W

Stretch = tuple[float, float, float]
"""The highest price, the lowest price, and the largest drop."""


def one_event(price: float) -> Stretch:
    """What to know about a single event."""
    return price, price, 0.0


def joined(a: Stretch, b: Stretch) -> Stretch:
    """What to know about two neighbouring stretches, of which a is the earlier."""
    return max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2], a[0] - b[1])


def largest_drop_of(stretch: Stretch) -> float:
    """The result."""
    return stretch[2]


NOTHING: Stretch = (-math.inf, math.inf, 0.0)

# A drop goes from an earlier high to a later low, so the order matters: not commutative.
largest_drop = A.define(
    lift=one_event,
    combine=joined,
    lower=largest_drop_of,
    identity=NOTHING,
    commutative=False,
    name="largest_drop",
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
    W.sliding(4, 2), {"drop": largest_drop("price"), "prices": A.collect("price")}, time="minute"
)


def main() -> None:
    """Print the largest drops, and what happens if the law is declared wrongly."""
    for row in QUERY.over(PRICES).to_pylist():
        minutes = f"minutes {row['start']} to {row['end'] - 1}"
        prices = ", ".join(f"{price:g}" for price in row["prices"])
        print(f"{minutes:16} {prices:20} largest drop {row['drop']:g}")

    print("\nDeclared commutative, it is refused:")
    try:
        A.define(one_event, joined, largest_drop_of, NOTHING, commutative=True, name="largest_drop")
    except pf.QueryError as error:
        print(error)


if __name__ == "__main__":
    main()
