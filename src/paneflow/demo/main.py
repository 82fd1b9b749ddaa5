"""The demo from beginning to end: generate, stream, answer, check, draw, sum up."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paneflow as pf
from paneflow.demo.checks import Versus, compare_with_table, compare_with_window
from paneflow.demo.feed import Feed
from paneflow.demo.live import Outcome, Seen, of_window, run
from paneflow.demo.plugs import Readings, readings
from paneflow.demo.question import HOUR, LIVE, PACKET, USE, sampled
from paneflow.demo.screen import screen
from paneflow.errors import PaneflowError
from paneflow.spark import session

OUTPUT = Path("demo-output")
RESULTS = ("readings", "rows", "checkpoint", "plugs.png", "summary.txt")
SPEED = 360
"""How much faster than the clock the plugs' time runs."""
SAMPLE, SPAN = 3_000, "10 minutes"
"""Over so many readings Spark's `window()` is asked as well, for a window of that length."""


def main() -> None:
    """Run the demo on a Spark of its own."""
    begun = time.monotonic()
    sent = readings()
    keys = sent.table.group_by(list(LIVE.key)).aggregate([]).num_rows
    print(f"{sent.table.num_rows:,} readings of {keys} smart plugs, {SPEED} times as fast as life")
    print(f"{LIVE}\nStarting Spark ...", flush=True)
    # Kernels are compiled once and kept. The first time that happens while Spark starts.
    compiling = threading.Thread(target=compile_kernels, args=(sent,), daemon=True)
    compiling.start()
    try:
        spark = start_spark()
    except PaneflowError as error:
        sys.exit(f"the demo cannot run: {error}")
    try:
        compiling.join()
        with screen() as show:
            outcome = stream(spark, sent, OUTPUT, SPEED, show)
        text = sum_up(spark, sent, outcome, OUTPUT)
    finally:
        spark.stop()
    print(f"{text}All of it took {time.monotonic() - begun:.0f} s.")


def start_spark() -> Any:
    """A quiet session that listens to this machine only."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return session("paneflow demo", **{"spark.log.level": "ERROR"})


def compile_kernels(sent: Readings) -> None:
    """Answer over a few readings, at once and by slices, as a stream is."""
    few = sent.table.slice(0, 1000)
    sliced = pf.Query({w: LIVE.windows[w] for w in (HOUR, USE)}, LIVE.aggregates, LIVE.key)
    sliced.finish(sliced.slice(few))
    for query in (LIVE, sampled(SPAN)):
        query.over(few)


def stream(
    spark: Any, sent: Readings, folder: Path, speed: float, show: Callable[[Seen, Feed], None]
) -> Outcome:
    """Answer the live stream; results of an earlier run are removed."""
    clean(folder)
    (folder / "readings").mkdir(parents=True)
    outcome = run(spark, Feed(sent, folder / "readings", speed), folder, show)
    shutil.rmtree(folder / "checkpoint")
    return outcome


def clean(folder: Path) -> None:
    """Remove what the demo left in a folder, and nothing else."""
    for name in RESULTS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sum_up(spark: Any, sent: Readings, outcome: Outcome, folder: Path, span: str = SPAN) -> str:
    """Compare, draw, and say how it went."""
    compared = compare_with_table(outcome.rows, sent)
    versus = compare_with_window(spark, sent.table.slice(0, SAMPLE), span)
    text = summary(outcome, compared, versus) + draw(sent, outcome, folder)
    (folder / "summary.txt").write_text(text, encoding="utf-8")
    return f"\n{text}"


def draw(sent: Readings, outcome: Outcome, folder: Path) -> str:
    """Draw the picture, if there is something to draw with; say where everything is."""
    try:
        from paneflow.demo import picture
    except ModuleNotFoundError:
        return f"All rows are in {folder}; a picture needs pip install 'paneflow[plot]'.\n"
    picture.draw(sent.table, outcome.rows, folder / "plugs.png")
    return f"All rows are in {folder}, with a picture, {folder / 'plugs.png'}.\n"


def summary(outcome: Outcome, compared: int, versus: Versus) -> str:
    """How it went, in a few lines."""
    hours, uses, packets = (
        of_window(outcome.rows, label).num_rows for label in (HOUR, USE, PACKET)
    )
    rate = outcome.readings / outcome.seconds
    return (
        f"Live:  {outcome.readings:,} readings in {outcome.seconds:.0f} s "
        f"({rate:,.0f} a second), {outcome.late:,} of them too late\n"
        f"       {hours:,} hours sliding by a second, {uses:,} sessions, "
        f"{packets:,} windows of 500 readings\n"
        f"Equal: {compared:,} rows, all but the sessions, are those of the table engine\n"
        f"Spark: {versus.span} by 1 second over {versus.readings:,} readings: window() takes "
        f"{versus.theirs:.1f} s, paneflow {versus.ours:.1f} s,\n"
        f"       {versus.theirs / versus.ours:.0f} times less, for the same "
        f"{versus.rows:,} rows\n"
    )
