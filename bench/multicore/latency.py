"""Latency of a stream at a quarter of the load it sustains: 4 PUs, batches of 100 events.

One thread pushes to the stream and another reads from it. Latency is the time from the push of the
event that ends a window until the reader has the window's row. The load that a stream sustains is
measured with the same batches, pushed as fast as they are accepted. At a quarter of that load
batches are pushed on a schedule, late ones at once; the rate that resulted is shown.

Latency counts from the call: a short batch is processed within its push, so a source that pushes on
a schedule may fall behind by that time. The highest percentiles depend on the machine as much as on
the program: on a busy one, a thread that only sleeps wakes up milliseconds late. So every strategy
runs several times, and the run with the median 99th percentile counts; the worst is shown next to
it. The first line shows the machine alone: how late a thread wakes up that sleeps as long as the
pushing thread does between two batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.multicore import pictures
from bench.multicore.streams import CHEAP, TOPOLOGIES
from bench.report import Sheet

WORKERS, LENGTH, RUNS = 4, 100, 5
PROMISED = ("handshake", "round_robin", "pane_line")
SETTLED = 20
"""Windows at the start of a stream are not counted: caches and branches are cold."""
Figures = dict[str, Any]


def events(n: int) -> list[pa.RecordBatch]:
    """The stream in batches, as users have them."""
    return [batch.given for batch in CHEAP.batches(n, LENGTH)]


def follow(
    strategy: str, batches: list[pa.RecordBatch], pace: float = 0.0
) -> tuple[float, float, list[float]]:
    """Seconds until the last push and the last row, and the latencies of windows meanwhile.

    Batches are pushed as fast as they are accepted, or one every `pace` seconds.
    """
    pushed: list[float] = []
    read: list[tuple[float, pa.Table]] = []
    with CHEAP.query.open(workers=WORKERS, strategy=strategy) as stream:

        def take() -> None:
            while not finished.is_set():
                for rows in stream.results(0.05):
                    read.append((time.perf_counter(), rows))
            for rows in stream.results():
                read.append((time.perf_counter(), rows))

        finished = threading.Event()
        reader = threading.Thread(target=take)
        reader.start()
        start = time.perf_counter()
        for k, batch in enumerate(batches):
            early = start + k * pace - time.perf_counter()
            if pace and early > 0:
                time.sleep(early)
            pushed.append(time.perf_counter())
            stream.push(batch)
        fed = time.perf_counter() - start
        if pace:
            time.sleep(0.1)
        stream.finish()
        finished.set()
        reader.join()
        done = time.perf_counter() - start
    latencies = [
        now - pushed[end // LENGTH]
        for now, rows in read
        for end in rows.column("end").unique().to_pylist()
        # Windows that close only at the end of the stream say nothing about latency.
        if end // LENGTH < len(pushed)
    ]
    return fed, done, latencies[SETTLED:]


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Milliseconds from the push of the event that ends a window to the window's row."""
    figures: Figures = {}
    floor = _percentiles([overslept() for _ in range(200 if quick else 1000)])
    rows = [["asleep", "", "", *(f"{ms:.2f}" for ms in floor), ""]]
    batches = events(60_000 if quick else 300_000)
    total = sum(batch.num_rows for batch in batches)
    for strategy in TOPOLOGIES:
        follow(strategy, batches[:100])
        sustained = total / min(follow(strategy, batches)[1] for _ in range(RUNS))
        runs = []
        for _ in range(RUNS):
            fed, _, latencies = follow(strategy, batches, 4 * LENGTH / sustained)
            runs.append((*_percentiles(latencies), total / fed))
        p50, p99, most, rate = sorted(runs, key=lambda run: run[1])[RUNS // 2]
        figures[strategy] = {"events/s": rate, "p50": p50, "p99": p99, "max": most}
        cells = [f"{sustained:,.0f}", f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{most:.2f}"]
        rows.append([strategy, *cells, f"{max(run[1] for run in runs):.2f}"])
    columns = ("sustained/s", "events/s", "p50 ms", "p99 ms", "max ms", "p99 of the worst run")
    headings = ("contestant", *columns)
    return figures, [Sheet(f"{CHEAP.name}: latency at a quarter of full load", headings, [rows])]


def overslept() -> float:
    """How many seconds late a thread wakes up that sleeps for a millisecond."""
    before = time.perf_counter()
    time.sleep(0.001)
    return time.perf_counter() - before - 0.001


def _percentiles(seconds: list[float]) -> tuple[float, float, float]:
    p50, p99, worst = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
    return float(p50), float(p99), float(worst)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Lines answer at once."""
    for name in PROMISED:
        p99 = figures[name]["p99"]
        yield p99 < 5, f"{name}: 99th percentile of latency is {p99:.2f} ms (5)"


def draw(figures: Figures) -> None:
    """Latency by strategy."""
    pictures.draw_latency(figures)
