"""A function of a whole window: forecast prices with a polynomial fitted to the latest quotes.

This is the trading query of Mencagli et al., "Harnessing Sliding-Window Execution Semantics for
Parallel Stream Processing", section 5.1. Quotes of several stocks arrive. For every stock and every
slide of its window, a polynomial is fitted to the prices inside and predicts the next price. A fit
cannot be updated event by event like a sum, so `A.apply` passes the quotes of each window to a
plain function. The authors fit with the Levenberg-Marquardt algorithm; for a polynomial, least
squares has a closed form, which is `numpy.polyfit`. Run it with `python examples/trading_fit.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W

SYMBOLS = ("ACME", "HAL", "WONKA")
SECONDS = 60
QUOTES_PER_SECOND = 40
DEGREE = 2


def quotes(seed: int = 2) -> pa.Table:
    """A minute of made-up quotes: each price swings slowly, with some noise on every quote."""
    r = np.random.default_rng(seed)
    n = len(SYMBOLS) * SECONDS * QUOTES_PER_SECOND
    seconds = np.sort(r.uniform(0, SECONDS, n))
    stock = r.integers(0, len(SYMBOLS), n)
    swing = 4 * np.sin(2 * np.pi * seconds / (15 + 10 * stock))
    return pa.table(
        {
            "ts": pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
            "symbol": pa.array(np.array(SYMBOLS)[stock]),
            "price": np.round(50 + 40 * stock + swing + r.normal(0, 0.3, n), 2),
            "volume": r.integers(1, 500, n),
        }
    )


def next_price(times: npt.NDArray[Any], prices: npt.NDArray[np.float64]) -> float:
    """The price a quarter of a second ahead, by a polynomial fitted to the window's quotes."""
    if len(prices) <= DEGREE:
        return float(prices[-1])
    # Relative to the last quote, times are small and the fit is well conditioned.
    seconds = (times - times[-1]) / np.timedelta64(1, "s")
    return float(np.polyval(np.polyfit(seconds, prices, DEGREE), 0.25))


QUERY = pf.Query(
    windows={"fit": W.sliding("2 seconds", "500 ms"), "then": W.tumbling("500 ms")},
    aggregates={
        "forecast": A.apply(next_price, "ts", "price"),
        "latest": A.last("price"),
        "mean": A.mean("price"),
    },
    key="symbol",
    time="ts",
)


def errors(rows: pa.Table) -> dict[str, tuple[int, float, float]]:
    """Per stock: the number of forecasts, their mean error, and that of the latest price.

    A forecast is compared with the mean price of the half second after its window, which the
    window does not contain.
    """
    mean_from = {
        (row["symbol"], row["start"]): row["mean"]
        for row in rows.to_pylist()
        if row["window"] == "then"
    }
    missed: dict[str, list[tuple[float, float]]] = {symbol: [] for symbol in SYMBOLS}
    for row in rows.to_pylist():
        happened = mean_from.get((row["symbol"], row["end"]))
        if row["window"] == "fit" and happened is not None:
            gaps = (abs(row["forecast"] - happened), abs(row["latest"] - happened))
            missed[row["symbol"]].append(gaps)
    means = {symbol: np.mean(gaps, axis=0) for symbol, gaps in missed.items()}
    return {
        symbol: (len(missed[symbol]), float(by_fit), float(by_latest))
        for symbol, (by_fit, by_latest) in means.items()
    }


def main() -> None:
    """Forecast, and print how far off the forecasts were."""
    table = quotes()
    rows = QUERY.over(table)
    print(f"{table.num_rows} quotes of {', '.join(SYMBOLS)} gave {rows.num_rows} rows\n")
    print("stock   forecasts   mean error: fit   latest price")
    for symbol, (forecasts, by_fit, by_latest) in errors(rows).items():
        print(f"{symbol:7} {forecasts:9} {by_fit:17.3f} {by_latest:14.3f}")


if __name__ == "__main__":
    main()
