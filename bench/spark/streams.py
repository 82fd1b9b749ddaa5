"""Streams of 600 s sliding by 1 s: rows a second of `over`, `write_stream` and `window()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import paneflow as pf
from bench.report import Sheet, console, verdict
from bench.spark.setting import events, files
from paneflow import aggregates as A, windows as W

WINDOW, BATCHES = 600, 8


def query() -> pf.Query:
    """Ten minutes sliding by a second."""
    window = W.sliding(f"{WINDOW} s", "1 s")
    return pf.Query(window, {"peak": A.max("v")}, key="key", time="ts", lateness="5 s")


def read(spark: Any, source: Path) -> Any:
    """A stream of one file at a time."""
    schema = spark.read.parquet(str(source)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))


def rate(progress: list[dict[str, Any]]) -> float:
    """Rows a second over the batches behind the first two, which start workers and compile."""
    warm = [p for p in progress if p["numInputRows"] > 0][2:]
    spent = sum(p["durationMs"]["triggerExecution"] for p in warm)
    return float(sum(p["numInputRows"] for p in warm) / spent * 1000)


def bytes_in(folder: Path) -> int:
    """The size of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def by_over(spark: Any, source: Path, checkpoint: Path) -> tuple[float, list[dict[str, Any]]]:
    """`query.over` into a sink that keeps nothing."""
    rows = query().over(read(spark, source))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    progress = [dict(p) for p in running.recentProgress]
    return rate(progress), progress


def by_sink(spark: Any, source: Path, checkpoint: Path) -> float:
    """`query.write_stream` into a function that keeps nothing."""
    stream = read(spark, source)
    running = query().write_stream(stream, lambda rows, batch: None, checkpoint, availableNow=True)
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


def run(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """100 and 10,000 keys; `window()` gets a thousandth of the rows."""
    each = 200_000 if quick else 1_000_000
    cells, over_rates, sink_rates = [], {}, {}
    for keys in (100, 10_000):
        source = files(folder, events(each * BATCHES, keys, 1200), BATCHES, f"stream{keys}")
        checkpoint = folder / f"over{keys}"
        over_rates[keys], progress = by_over(spark, source, checkpoint)
        sink_rates[keys] = by_sink(spark, source, folder / f"sink{keys}")
        state = max(p["stateOperators"][0]["memoryUsedBytes"] for p in progress)
        slices = keys * min(WINDOW, 1200)
        disk = bytes_in(checkpoint / "state") / len(progress)
        cells.append(
            [
                f"{keys:,}",
                f"{over_rates[keys] / 1e6:.2f}",
                f"{sink_rates[keys] / 1e6:.2f}",
                f"{state / slices:.0f}",
                f"{disk / 1e6:.2f}",
            ]
        )
        console.log(f"{keys} keys: {cells[-1]}")
    few = files(folder, events(each * BATCHES // 1000, 100, 1200), BATCHES, "few-stream")
    own = by_window(spark, few, folder / "own")
    ratio = over_rates[100] / own
    verdict(ratio >= 100, f"stream, 100 keys: {ratio:,.0f} times Spark's window() (100)")
    share = over_rates[10_000] / over_rates[100]
    verdict(share >= 0.5, f"stream, 10,000 keys: {share:.2f} of the rate of 100 keys (0.5)")
    faster = sink_rates[100] / over_rates[100]
    verdict(faster >= 2, f"write_stream: {faster:.1f} times over, 100 keys (2)")
    headings = (
        "keys",
        "over, M rows/s",
        "write_stream, M rows/s",
        "state bytes a slice and key",
        "checkpoint MB a batch",
    )
    sheet = Sheet(f"streams, {each:,} rows a batch; window(): {own:,.0f} rows/s", headings, [cells])
    sheet.show()
    return [sheet]
