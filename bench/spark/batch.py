"""Batch DataFrames: by overlap against Spark's `window()`, one hot key, many windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import functions as F

import paneflow as pf
from bench.report import Sheet, console, verdict
from bench.spark.setting import best, events, frame, seconds
from paneflow import aggregates as A, windows as W

MILLION = 1_000_000


def peak(length: int) -> pf.Query:
    """The maximum of windows of that many seconds, sliding by one second."""
    window = W.sliding(f"{length} s", "1 s")
    return pf.Query(window, {"peak": A.max("v")}, key="key", time="ts")


def spark_window(data: Any, length: int) -> Any:
    """The same with Spark's own function."""
    window = F.window("ts", f"{length} seconds", "1 second")
    return data.groupBy("key", window).agg(F.max("v").alias("peak"))


def by_overlap(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """paneflow and `window()` over one million rows of 100 keys."""
    count = MILLION // 10 if quick else MILLION
    data = frame(spark, folder, events(count, 100, 3600), "overlap")
    cells: list[list[str]] = []
    own: dict[int, float] = {}
    for length in (1, 60):
        answers = {"paneflow": peak(length).over(data), "spark": spark_window(data, length)}
        taken = best(answers, 4 if length == 1 else 2)
        own[length] = taken["spark"]
        ratio = taken["spark"] / taken["paneflow"]
        target = 0.8 if length == 1 else 4
        verdict(ratio >= target, f"overlap {length}: {ratio:.2f} times Spark's window() ({target})")
        cells.append(
            [str(length), f"{taken['paneflow']:.2f}", f"{own[length]:.2f}", f"{ratio:.1f}"]
        )
    # Spark needs minutes for the same rows, so it runs once, and not at all in a quick run.
    # Fewer rows would not be a fair test: rows share windows, so time does not scale with them.
    ours = best({"paneflow": peak(600).over(data)}, 2)["paneflow"]
    cells.append(["600", f"{ours:.2f}", "", ""])
    if not quick:
        theirs = seconds(spark_window(data, 600))
        ratio = theirs / ours
        verdict(ratio >= 50, f"overlap 600: {ratio:.0f} times Spark's window() (50)")
        cells[-1] = ["600", f"{ours:.2f}", f"{theirs:.0f}", f"{ratio:.0f}"]
    large = frame(spark, folder, events(10 * count, 100, 7200), "large")
    hour = best({"paneflow": peak(3600).over(large)}, 1)["paneflow"]
    verdict(
        hour <= own[60],
        f"ten times the rows at overlap 3,600 take {hour:.1f} s; Spark's 60 takes {own[60]:.1f} s",
    )
    cells.append(["3,600 (10 times the rows)", f"{hour:.2f}", "", ""])
    large.unpersist()
    data.unpersist()
    headings = ("overlap", "paneflow, s", "window(), s", "times")
    return [Sheet(f"max over {count:,} rows, 100 keys", headings, [cells])]


def hot_key(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """One key with nine tenths of the rows, compared with evenly spread keys."""
    count = MILLION if quick else 10 * MILLION
    even = frame(spark, folder, events(count, 100, 3600), "even")
    hot = frame(spark, folder, events(count, 100, 3600, hot=0.9), "hot")
    cells = []
    for name, window, aggregate in (
        ("max", W.sliding("60 s", "1 s"), A.max("v")),
        ("median", W.sliding("60 s", "10 s"), A.median("v")),
        ("max of count(100, 10)", W.count(100, 10), A.max("v")),
    ):
        query = pf.Query(window, {"value": aggregate}, key="key", time="ts")
        taken = best({"even": query.over(even), "hot": query.over(hot)}, 1)
        ratio = taken["hot"] / taken["even"]
        verdict(ratio <= 2, f"one key with 90 % of the rows, {name}: {ratio:.2f} times as long (2)")
        cells.append([name, f"{taken['even']:.2f}", f"{taken['hot']:.2f}", f"{ratio:.2f}"])
    even.unpersist()
    hot.unpersist()
    headings = ("aggregate", "even, s", "one hot key, s", "ratio")
    return [Sheet(f"a hot key among {count:,} rows", headings, [cells])]


def many_windows(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """One to a thousand tumbling windows of random lengths in one query."""
    count = MILLION // 5 if quick else 2 * MILLION
    data = frame(spark, folder, events(count, 100, 3600), "many")
    lengths = np.random.default_rng(7).choice(np.arange(60, 3601), 1000, replace=False)

    def query(several: int) -> pf.Query:
        # The shortest is always among them, so it does not affect any ratio.
        chosen = [int(lengths.min()), *(n for n in lengths if n > lengths.min())][:several]
        windows = [W.sliding(f"{n} s", f"{n} s", offset="1 s") for n in chosen]
        return pf.Query(windows, {"peak": A.max("v")}, key="key", time="ts")

    answers = {f"{several:,}": query(several).over(data) for several in (1, 2, 10, 100, 1000)}
    rows = {name: answer.count() for name, answer in answers.items()}
    # The cost of rows: one window that slides so finely that it emits as many.
    slide = f"{round(3600 * 2 * 100 / rows['1,000'] * 1000)} ms"
    window = W.sliding("3600 s", slide)
    fine = pf.Query(window, {"peak": A.max("v")}, key="key", time="ts").over(data)
    answers["one, finely"] = fine
    rows["one, finely"] = fine.count()
    taken = best(answers, 1 if quick else 3)
    one = taken["1"]
    priced = (taken["one, finely"] - one) * rows["1,000"] / rows["one, finely"]
    ratio = (taken["1,000"] - priced) / one
    verdict(
        ratio <= 5,
        f"1,000 windows take {ratio:.1f} times one without their rows (5), "
        f"{taken['1,000'] / one:.1f} times with them",
    )
    cells = [
        [name, f"{rows[name]:,}", f"{spent:.2f}", f"{spent / one:.1f}"]
        for name, spent in taken.items()
    ]
    data.unpersist()
    headings = ("windows", "rows given", "s", "times one")
    return [Sheet(f"many windows over {count:,} rows", headings, [cells])]


def run(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """All of them."""
    sheets: list[Sheet] = []
    for part in (by_overlap, hot_key, many_windows):
        made = part(spark, folder, quick)
        for sheet in made:
            sheet.show()
        sheets += made
        console.log(f"{part.__name__} done")
    return sheets
