"""Contestants are timed only after their answers agree."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from bench.contestants import ALL, CONTESTANTS, Contestant

TOLERANCE = 1e-9
"""Means add floats in a different order, so their last digits may differ."""


def disagreement(contestant: Contestant, table: pa.Table, overlap: int) -> str | None:
    """How a contestant's answer differs from paneflow's; None if it does not."""
    ours = _answer(CONTESTANTS["paneflow"], table, overlap)
    theirs = _answer(contestant, table, overlap)
    both = ours.join(theirs, on=["key", "start"], how="inner", suffix="_theirs")
    if both.height < theirs.height:
        return f"{theirs.height - both.height} rows are not among paneflow's {ours.height}"
    if contestant.rows == ALL and both.height < ours.height:
        return f"{ours.height - both.height} of paneflow's {ours.height} rows are missing"
    apart = (pl.col("mean") - pl.col("mean_theirs")).abs() > TOLERANCE * pl.col("mean").abs()
    wrong = both.filter(
        (pl.col("peak") != pl.col("peak_theirs"))
        | (pl.col("events") != pl.col("events_theirs"))
        | apart
    )
    return f"{wrong.height} of {both.height} rows have other values" if wrong.height else None


def _answer(contestant: Contestant, table: pa.Table, overlap: int) -> pl.DataFrame:
    result = contestant.run(contestant.prepare(table), overlap)
    frame = pl.from_arrow(contestant.arrow(result))
    assert isinstance(frame, pl.DataFrame)
    return frame.select(
        pl.col("key"),
        pl.col("start").cast(pl.Int64),
        pl.col("peak"),
        pl.col("mean"),
        pl.col("events").cast(pl.Int64),
    )
