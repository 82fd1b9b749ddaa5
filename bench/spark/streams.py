"""Streams of 600 s sliding by 1 s or 60 s: rows a second of `over`, `write_stream`, `window()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import paneflow as pf
from bench.report import Sheet, console, verdict
from bench.spark.setting import events, files
from paneflow import aggregates as A, windows as W

WINDOW, BATCHES = 600, 8


def query(slide: int) -> pf.Query:
    """Ten minutes sliding by that many seconds."""
    window = W.sliding(f"{WINDOW} s", f"{slide} s")
    return pf.Query(window, {"peak": A.max("v")}, key="key", time="ts", lateness="5 s")


def read(spark: Any, source: Path) -> Any:
    """A stream of one file at a time."""
    schema = spark.read.parquet(str(source)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))


def rate(progress: list[dict[str, Any]]) -> float:
    """Rows a second over all batches but the first two, which start workers and compile."""
    warm = [p for p in progress if p["numInputRows"] > 0][2:]
    spent = sum(p["durationMs"]["triggerExecution"] for p in warm)
    return float(sum(p["numInputRows"] for p in warm) / spent * 1000)


def bytes_in(folder: Path) -> int:
    """The size of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def by_over(
    spark: Any, source: Path, checkpoint: Path, slide: int
) -> tuple[float, list[dict[str, Any]]]:
    """`query.over` with a sink that discards its rows."""
    rows = query(slide).over(read(spark, source))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    progress = [dict(p) for p in running.recentProgress]
    return rate(progress), progress


def by_sink(spark: Any, source: Path, checkpoint: Path, slide: int) -> float:
    """`query.write_stream` with a function that discards its rows."""
    asked, stream = query(slide), read(spark, source)
    running = asked.write_stream(stream, lambda rows, batch: None, checkpoint, availableNow=True)
    running.awaitTermination()
    return rate([dict(p) for p in running.recentProgress])


def by_window(spark: Any, source: Path, checkpoint: Path) -> float:
    """Spark's own window over the same stream."""
    stream = read(spark, source).withWatermark("ts", "5 seconds")
    window = F.window("ts", f"{WINDOW} seconds", "1 second")
    rows = stream.groupBy("key", window).agg(F.max("v"))
    writer = rows.writeStream.format("noop").outputMode("append")
    running = (
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    running.awaitTermination()
    return rate([dict(p) for p in running.recentProgress])


SETTINGS: tuple[tuple[str, int, int, float | None], ...] = (
    ("100", 100, 1, None),
    ("10,000", 10_000, 1, None),
    ("10,000 by Zipf's law", 10_000, 1, 1.2),
    ("10,000", 10_000, 60, None),
    ("100,000", 100_000, 60, None),
)
"""A name, the number of keys, the slide in seconds, and the skew of keys."""


def run(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """Few keys and many, even and uneven; `window()` gets fewer rows, as it takes minutes.

    Its batches are as large as is practical: small ones would be unfair, because each has a high
    fixed cost.
    """
    each, batches = (10_000, 3) if quick else (1_000_000, BATCHES)
    cells, over_rates, sink_rates = [], {}, {}
    for name, keys, slide, zipf in SETTINGS:
        mark = f"{keys}-{slide}-{zipf}"
        table = events(each * batches, keys, 1200, zipf=zipf)
        source = files(folder, table, batches, f"stream-{mark}")
        checkpoint = folder / f"over-{mark}"
        over_rates[name, slide], progress = by_over(spark, source, checkpoint, slide)
        sink_rates[name, slide] = by_sink(spark, source, folder / f"sink-{mark}", slide)
        state = max(p["stateOperators"][0]["memoryUsedBytes"] for p in progress)
        slices = len(table["key"].unique()) * WINDOW // slide
        disk = bytes_in(checkpoint / "state") / len(progress)
        cells.append(
            [
                name,
                f"{slide} s",
                f"{over_rates[name, slide] / 1e6:.2f}",
                f"{sink_rates[name, slide] / 1e6:.2f}",
                f"{state / slices:.0f}",
                f"{disk / 1e6:.2f}",
            ]
        )
        console.log(f"{name} keys: {cells[-1][1:]}")
    fewer = each // 10
    few = files(folder, events(fewer * 4, 100, 1200), 4, "few-stream")
    own = by_window(spark, few, folder / "own")
    ratio = over_rates["100", 1] / own
    verdict(ratio >= 100, f"stream, 100 keys: {ratio:,.0f} times Spark's window() (100)")
    share = over_rates["10,000", 1] / over_rates["100", 1]
    verdict(share >= 0.5, f"stream, 10,000 keys: {share:.2f} of the rate of 100 keys (0.5)")
    faster = sink_rates["100", 1] / over_rates["100", 1]
    verdict(faster >= 2, f"write_stream: {faster:.1f} times over, 100 keys (2)")
    headings = (
        "keys",
        "slide",
        "over, M rows/s",
        "write_stream, M rows/s",
        "state bytes a slice and key",
        "checkpoint MB a batch",
    )
    title = f"streams, {each:,} rows a batch; window(), {fewer:,} a batch: {own:,.0f} rows/s"
    sheet = Sheet(title, headings, [cells])
    sheet.show()
    return [sheet]
