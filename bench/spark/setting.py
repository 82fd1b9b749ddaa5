"""The session, the events and the clock that the Spark benchmarks share."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paneflow.spark import session

BEGIN = 1_700_000_000_000_000
SECOND = 1_000_000


@contextmanager
def spark_in_folder() -> Iterator[tuple[Any, Path]]:
    """A session and a folder for files, while a benchmark runs."""
    folder = Path(tempfile.mkdtemp(prefix="paneflow-bench-"))
    spark = session("paneflow bench", **{"spark.driver.memory": "6g"})
    try:
        yield spark, folder
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def events(
    count: int, keys: int, span: int, hot: float = 0.0, zipf: float | None = None, seed: int = 0
) -> pa.Table:
    """Events over `span` seconds in order of time; key 0 has a share `hot` of them.

    With `zipf` the n-th key has a share in proportion to n ** -zipf; otherwise all are equal.
    """
    rng = np.random.default_rng(seed)
    if zipf is None:
        key = rng.integers(0, keys, count)
    else:
        shares = np.cumsum(np.arange(1, keys + 1) ** -zipf)
        key = np.searchsorted(shares / shares[-1], rng.random(count))
    key[rng.random(count) < hot] = 0
    times = BEGIN + np.sort(rng.integers(0, span * SECOND, count))
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"key": key, "ts": stamps, "v": rng.normal(size=count)})


def frame(spark: Any, folder: Path, table: pa.Table, name: str) -> Any:
    """The events as a cached DataFrame read from a file with several row groups."""
    path = folder / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=max(1, table.num_rows // 8))
    cached = spark.read.parquet(str(path)).cache()
    cached.count()
    return cached


def files(folder: Path, table: pa.Table, batches: int, name: str) -> Path:
    """The events as one file for each micro-batch, in order of time."""
    target = folder / name
    target.mkdir()
    each = -(-table.num_rows // batches)
    for k in range(batches):
        pq.write_table(table.slice(k * each, each), target / f"{k:04}.parquet")
        time.sleep(0.01)  # Spark reads files in the order of their times
    return target


def seconds(answer: Any) -> float:
    """The seconds it takes to compute every row of a frame."""
    before = time.perf_counter()
    answer.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - before


def best(answers: dict[str, Any], rounds: int) -> dict[str, float]:
    """The best time of each, run in turns after a first round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in answers}
    for _ in range(rounds + 1):
        for name, answer in answers.items():
            times[name].append(seconds(answer))
    return {name: min(taken[1:]) for name, taken in times.items()}
