"""One contestant, one case, one new process: seconds, rows, and peak memory.

Run as `python -m bench.measuring <task as JSON>`; `measure` does that and reads the answer. The
input comes as Arrow files, one for each range of keys. They are read, converted to the contestant's
form and answered one after another; each result is dropped before the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.contestants import CONTESTANTS
from bench.data import events
from bench.memory import Peak

ROOT = str(Path(__file__).resolve().parent.parent)
START = 60.0
RUNS = 3
LONG = 20.0
"""A case that takes more seconds than this runs only once."""
SHORT = 2.0
"""Short runs are noisy, so they are repeated for this many seconds, up to three times as often."""


@dataclass(frozen=True)
class Task:
    """What to measure; with `limit`, given up if it would take more seconds than that."""

    contestant: str
    overlap: int
    files: tuple[str, ...]
    limit: float | None = None


@dataclass(frozen=True)
class Measured:
    """The result; memory is that of the key range that took the most."""

    seconds: float
    """The best of the runs, or the estimate if `over`."""
    over: bool = False
    """Given up: the first key ranges, or the time limit, showed that it would take too long."""
    rows: int = 0
    input_bytes: int = 0
    result_bytes: int = 0
    peak_bytes: int | None = None

    def better(self, other: Measured) -> Measured:
        """The better time of two, and the higher peak."""
        peaks = [m.peak_bytes for m in (self, other) if m.peak_bytes is not None]
        return replace(
            min(self, other, key=lambda m: m.seconds), peak_bytes=max(peaks, default=None)
        )

    @property
    def peak_ratio(self) -> float | None:
        """The peak as a multiple of the input."""
        return None if self.peak_bytes is None else self.peak_bytes / self.input_bytes

    @property
    def result_ratio(self) -> float:
        """The rows of the result, as a multiple of the input."""
        return self.result_bytes / self.input_bytes

    @property
    def working_ratio(self) -> float | None:
        """The peak without the rows of the result, as a multiple of the input."""
        if self.peak_bytes is None:
            return None
        return max(0, self.peak_bytes - self.result_bytes) / self.input_bytes


def measure(task: Task) -> Measured:
    """Run a task in a process of its own."""
    command = [sys.executable, "-m", "bench.measuring", json.dumps(asdict(task))]
    # Time to start, to read and to warm up, and for one run that turns out too long.
    patience = None if task.limit is None else START + 3 * task.limit
    # It can import what this process can.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, *sys.path]))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, env=environment, check=False
        )
    except subprocess.TimeoutExpired as stopped:
        return Measured(seconds=stopped.timeout, over=True)
    if done.returncode:
        raise RuntimeError(f"{task.contestant} failed with {task}:\n{done.stderr}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def run(task: Task) -> Measured:
    """Measure in this process."""
    contestant = CONTESTANTS[task.contestant]
    # Compiling, loading libraries and starting threads are not part of a measurement.
    contestant.run(contestant.prepare(events(50_000, 100)), task.overlap)
    seconds, rows = 0.0, 0
    heaviest = Measured(0.0)
    for k, file in enumerate(task.files):
        table = _read(file)
        prepared = contestant.prepare(table)
        peak = Peak()
        answer = partial(contestant.run, prepared, task.overlap)
        taken, result = timed(answer)
        above = peak.above()
        count, size = _extent(result)
        rows += count
        if (above or 0) >= (heaviest.peak_bytes or 0):
            heaviest = Measured(0.0, False, 0, table.nbytes, size, above)
        del result
        spent, runs = taken, 1
        while taken * len(task.files) < LONG and not enough(runs, spent):
            again, result = timed(answer)
            del result
            taken, spent, runs = min(taken, again), spent + again, runs + 1
        seconds += taken
        estimate = seconds * len(task.files) / (k + 1)
        if task.limit is not None and k + 1 < len(task.files) and estimate > task.limit:
            return Measured(estimate, over=True)
    return replace(heaviest, seconds=seconds, rows=rows)


def enough(runs: int, seconds: float) -> bool:
    """Whether the best of this many runs, in this many seconds, is good enough."""
    return runs >= 3 * RUNS or (runs >= RUNS and seconds >= SHORT)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the call returned."""
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result


def side_by_side(*calls: Callable[[], Any]) -> list[float]:
    """The best seconds of several calls, run in turns, so that noise affects all of them alike."""
    best = [timed(call)[0] for call in calls]
    runs, spent = 1, sum(best)
    while not enough(runs, spent / len(calls)):
        again = [timed(call)[0] for call in calls]
        best = [min(pair) for pair in zip(best, again, strict=True)]
        runs, spent = runs + 1, spent + sum(again)
    return best


def _extent(result: Any) -> tuple[int, int]:
    """The rows of an Arrow table or a polars frame, and their bytes in memory.

    The labels of a single window are zeros that were never written. They take no memory yet, and
    counting them would hide as much of what the call took apart from its rows.
    """
    if isinstance(result, pa.Table):
        written = (c for c in result.columns if not _is_single_label(c))
        return result.num_rows, sum(column.nbytes for column in written)
    return result.height, int(result.estimated_size())


def _is_single_label(column: pa.ChunkedArray) -> bool:
    return pa.types.is_dictionary(column.type) and all(
        len(chunk.dictionary) == 1 for chunk in column.chunks
    )


def _read(file: str) -> pa.Table:
    # Not mapped: the input is in memory, as for every contestant, before the peak is counted.
    with pa.OSFile(file) as source:
        return pa.ipc.open_file(source).read_all().combine_chunks()


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(asdict(run(Task(**{**given, "files": tuple(given["files"])})))))
