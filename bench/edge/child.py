"""One child node: events a second by aggregate, batch length, keys and concurrent windows.

*Node* is the state machine alone in one thread: events are cut, slices are held, and a report is
written as bytes whenever a window closes. *Process* is a real tree: a sensor pushes over a socket
as fast as the child takes it, the child is a process of its own that writes its log and reports,
and the clock stops when the root has the row of the last window.

Beside them, in the same run, what such work cannot be faster than: copying the columns, and cutting
events into slices without holding or sending these. `polars` answers each batch with
`group_by_dynamic`, which a child has to do at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import paneflow as pf
from bench.edge import pictures
from bench.edge.processes import pushed_through
from bench.edge.stream import AGGREGATES, GOALS, ONE_SECOND, Feed, asked
from bench.measuring import side_by_side
from bench.report import Sheet
from paneflow import windows as W
from paneflow.engines import table
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import Flush, Pushed
from paneflow.engines.edge.wire import Numbered, Wire
from paneflow.windows import Window

Figures = dict[str, Any]
LENGTHS = (100_000, 1_000)
KEYS = (1, 100, 10_000, 100_000)
WINDOWS = (1, 10, 100, 1_000)
SECONDS = 2
"""Seconds of event time in a run."""
MOST_BATCHES = 2_000
"""Batches in a second of event time: many short ones make fewer events."""
IN_POLARS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "max": pl.Expr.max,
    "avg": pl.Expr.mean,
    "median": pl.Expr.median,
}


def report(question: Question, batches: Sequence[pa.Table]) -> int:
    """Let a child node take batches and report; gives the bytes of its reports."""
    child, wire = Child("child", question), Wire(question.schemas)
    numbers = size = 0
    for position, events in enumerate(batches, 1):
        child.take(child.cut(Pushed("sensor", events), position))
        if child.due:
            said = child.take(Flush()).report
            assert said is not None, "a flush is answered"
            numbers += 1
            size += len(wire.encode(Numbered(numbers, said)))
    return size


def _copy(batches: Sequence[pa.Table]) -> None:
    for events in batches:
        for column in events.columns:
            np.copy(column.chunk(0).view(pa.int64()).to_numpy())


def _cut(query: pf.Query, batches: Sequence[pa.Table]) -> None:
    for events in batches:
        table.cut(query, events)


def _in_polars(aggregate: str, frames: Sequence[pl.DataFrame]) -> None:
    x = IN_POLARS[aggregate](pl.col("v"))
    for frame in frames:
        keys = "key" if "key" in frame.columns else None
        frame.group_by_dynamic("ts", every="1s", group_by=keys).agg(x)


def fed(aggregate: str, length: int, keys: int) -> Feed:
    """Events at the rate that is to be reached."""
    return Feed(length, min(GOALS[aggregate], MOST_BATCHES * length), keys)


def compare(
    aggregate: str, length: int, keys: int = 0, windows: Sequence[Window] = (), share: float = 1.0
) -> dict[str, float]:
    """Events a second of a node alone, and of what it cannot be faster than.

    `share`: of the events of a full run.
    """
    feed = fed(aggregate, length, keys)
    query = asked(aggregate, keys, list(windows) or ONE_SECOND)
    question = Question(query, feed.schema)
    count = max(2, int(SECONDS * feed.rate * share) // length)
    batches = [feed.batch(number) for number in range(count)]
    few = batches[: max(2, count // 10)]
    frames = [pl.DataFrame(events).with_columns(pl.col("ts").set_sorted()) for events in few]
    node, *others = side_by_side(
        partial(report, question, batches),
        partial(_copy, few),
        partial(_cut, query, few),
        partial(_in_polars, aggregate, frames),
    )
    copied, cut, answered = (len(few) * length / seconds for seconds in others)
    return {"node": count * length / node, "copied": copied, "cut": cut, "polars": answered}


def through(aggregate: str, length: int, keys: int = 0, share: float = 1.0) -> float:
    """Events a second from a sensor's socket to the row of the last window."""
    feed = fed(aggregate, length, keys)
    batches = max(2, int(SECONDS * feed.rate * share) // length)
    return pushed_through(asked(aggregate, keys), [feed], batches).events_per_second


def lengths(windows: int, seed: int = 7) -> list[Window]:
    """Tumbling windows between one and twenty seconds, in milliseconds; the first has one second.

    So a window closes every second at least, however many there are.
    """
    others = np.arange(1_001, 20_001)
    picked = np.random.default_rng(seed).choice(others, windows - 1, replace=False)
    return [W.tumbling(f"{length} ms") for length in (1_000, *picked)]


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Everything, for all aggregates."""
    share = 0.1 if quick else 1.0
    figures: Figures = {"lengths": {}, "keys": {}, "windows": {}}
    for aggregate in AGGREGATES:
        for length in LENGTHS:
            found = compare(aggregate, length, share=share)
            found["process"] = through(aggregate, length, share=share)
            figures["lengths"].setdefault(aggregate, {})[length] = found
        for keys in KEYS:
            found = compare(aggregate, LENGTHS[0], keys, share=share)
            found["process"] = through(aggregate, LENGTHS[0], keys, share=share)
            figures["keys"].setdefault(aggregate, {})[keys] = found
        for windows in WINDOWS:
            found = compare(aggregate, LENGTHS[0], windows=lengths(windows), share=share)
            figures["windows"].setdefault(aggregate, {})[windows] = found
    return figures, sheets(figures)


def sheets(figures: Figures) -> list[Sheet]:
    """Millions of events a second."""
    titles = {
        "lengths": ("events in a batch", "one child node, no keys: million events/s"),
        "keys": ("keys", "one child node, batches of 100,000: million events/s"),
        "windows": ("windows", "one child node, concurrent windows of 1 to 20 s: million events/s"),
    }
    made = []
    for what, (heading, title) in titles.items():
        columns = ["node", "process"] if what != "windows" else ["node"]
        columns += ["cut", "copied"] if what == "windows" else ["cut", "copied", "polars"]
        sections = [
            [
                [aggregate, f"{amount:,}", *(f"{row[name] / 1e6:,.1f}" for name in columns)]
                for amount, row in found.items()
            ]
            for aggregate, found in figures[what].items()
        ]
        made.append(Sheet(title, ("contestant", heading, *columns), sections))
    return made


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """What is to be reached, by the process and by the node alone."""
    for aggregate, goal in GOALS.items():
        found = figures["lengths"][aggregate][LENGTHS[0]]
        for what in ("process", "node"):
            yield (
                found[what] >= goal,
                f"{aggregate}: {what} takes {found[what] / 1e6:.1f} million events/s "
                f"({goal / 1e6:.0f})",
            )
        keyed = figures["keys"][aggregate]
        for what in ("process", "node"):
            share = keyed[10_000][what] / keyed[1][what]
            yield share >= 0.5, f"{aggregate}: {what} with 10,000 keys: {share:.2f} of one (0.5)"
        many = figures["windows"][aggregate]
        cost = many[1]["node"] / many[1_000]["node"]
        yield cost <= 2, f"{aggregate}: 1,000 windows take {cost:.2f} times as long as one (2)"


def draw(figures: Figures) -> None:
    """Events a second by batch, keys and windows."""
    pictures.draw_child(figures)
