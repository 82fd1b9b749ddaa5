"""The slices of trees as a frame and as a stream of Spark: the rows of all events of all trees."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.outputs.slices import SlicesOutput
from paneflow.engines.edge.question import Question
from paneflow.engines.spark.sources.tree_slices import (
    finish_slices,
    read_slices,
    slices_in,
    stream_slices,
)
from paneflow.errors import InputError
from tests.edge.trees import Tree, draw_shape
from tests.properties.compare import assert_same_rows
from tests.spark.support import assert_same_set

pytestmark = pytest.mark.long

SECOND = 1_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("house", pa.string()), ("v", pa.float64())])
QUERY = pf.Query(
    {"minute": W.sliding("1 minute", "10 s"), "visit": W.session("30 s")},
    {
        "n": A.count(),
        "peak": A.max("v"),
        "mean": A.mean("v"),
        "middle": A.median("v"),
        "distinct": A.approx_distinct("v"),
        "top": A.top_k("v", 2),
    },
    key="house",
    time="ts",
)


class Trees:
    """Trees whose roots write their slices, one step after the other."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folders = [folder / f"tree-{k}" for k in range(number)]
        self._outputs = [SlicesOutput(folder) for folder in self.folders]
        self._steps = [0] * number
        self._random = random.Random(number)
        self.events: pa.Table = SCHEMA.empty_table()

    def step(self, tree: int) -> None:
        """A tree takes some events more."""
        rows = [
            {
                "ts": self._random.randrange(300) * SECOND,
                "house": self._random.choice(["a", "b", "c", None]),
                "v": float(self._random.randrange(50)),
            }
            for _ in range(40)
        ]
        more = pa.Table.from_pylist(rows, SCHEMA)
        self._steps[tree] += 1
        self._outputs[tree].write(QUERY.slice(more).table, self._steps[tree])
        self.events = pa.concat_tables([self.events, more])


def test_slices_of_many_trees_finish_to_the_rows_of_all_events(spark: Any, tmp_path: Path) -> None:
    trees = Trees(tmp_path, 3)
    for tree in (0, 1, 0, 2, 1, 0):
        trees.step(tree)
    frame = read_slices(spark, trees.folders)
    expected = QUERY.over(trees.events)
    assert_same_set(QUERY, finish_slices(QUERY, frame).toArrow(), expected)
    assert QUERY.finish(slices_in(frame)).equals(expected)
    assert {row["tree"] for row in frame.select("tree").collect()} == set(map(str, trees.folders))
    assert frame.agg({"events": "sum"}).head()[0] == 6 * 40 * 2  # each of two slicings has all


def test_a_stream_gives_each_step_once_over_restarts(spark: Any, tmp_path: Path) -> None:
    trees = Trees(tmp_path, 2)
    parts: list[pf.Slices] = []
    steps: list[tuple[str, int]] = []

    def take(frame: Any, batch: int) -> None:
        parts.append(slices_in(frame))
        steps.extend(tuple(row) for row in frame.select("tree", "number").distinct().collect())

    def run() -> None:
        query = (
            stream_slices(spark, trees.folders)
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for tree in (0, 1, 0):
        trees.step(tree)
    run()
    for tree in (1, 1, 0):
        trees.step(tree)
    run()
    together = parts[0]
    for part in parts[1:]:
        together = together.merge(part)
    assert QUERY.finish(together).equals(QUERY.over(trees.events))
    assert sorted(steps) == [(str(f), n) for f in trees.folders for n in (1, 2, 3)]


SLICED = pf.Query(
    {"minute": W.sliding("1 minute", "10 s"), "visit": W.session("5 s")},
    {"n": A.count(), "peak": A.max("v"), "mean": A.mean("v"), "top": A.top_k("v", 2)},
    key="house",
    time="ts",
)


def grown(r: random.Random) -> tuple[Tree, pa.Table]:
    """A tree of several levels that has ended, with what its root released, and all its events."""
    tree = Tree(Question(SLICED, SCHEMA), draw_shape(r, 3))
    pushed = []
    for start in range(0, 300, 10):
        child = r.choice(tree.children)
        times = sorted(r.randrange(start, start + 10) * SECOND for _ in range(8))
        rows = [{"ts": t, "house": r.choice("ab"), "v": float(r.randrange(50))} for t in times]
        pushed.append(pa.Table.from_pylist(rows, SCHEMA))
        tree.push(child, pushed[-1])
        for _ in range(5):
            tree.move(r)
    tree.finish()
    assert tree.late == 0
    return tree, pa.concat_tables(pushed)


def test_what_roots_release_finishes_to_the_oracles_rows_over_restarts_of_the_stream(
    spark: Any, tmp_path: Path
) -> None:
    trees = [grown(random.Random(seed)) for seed in range(3)]
    folders = [tmp_path / f"tree-{k}" for k in range(3)]
    outputs = [SlicesOutput(folder) for folder in folders]
    parts: list[pf.Slices] = []
    for half in (0, 1):
        for (tree, _), output in zip(trees, outputs, strict=True):
            released = list(enumerate(tree.slices, 1))
            middle = len(released) // 2
            assert middle
            for number, slices in released[middle:] if half else released[:middle]:
                output.write(slices, number)
        query = (
            stream_slices(spark, folders)
            .writeStream.foreachBatch(lambda frame, batch: parts.append(slices_in(frame)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    expected = SLICED.over(pa.concat_tables([events for _, events in trees]), engine="oracle")
    together = functools.reduce(pf.Slices.merge, parts)
    assert_same_rows(SLICED, SLICED.finish(together), expected)
    frame = read_slices(spark, folders)
    assert_same_set(SLICED, finish_slices(SLICED, frame).toArrow(), expected)


def test_trees_without_slices_give_none(spark: Any, tmp_path: Path) -> None:
    frame = read_slices(spark, Trees(tmp_path, 1).folders[0])
    with pytest.raises(InputError, match="the frame holds no slices"):
        finish_slices(QUERY, frame)


def test_a_folder_that_is_not_there_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder: name the folder that the root"):
        stream_slices(spark, [tmp_path / "nothing"])


def test_slices_of_another_query_are_refused(spark: Any, tmp_path: Path) -> None:
    trees = Trees(tmp_path, 1)
    trees.step(0)
    other = pf.Query(W.tumbling("5 s"), {"peak": A.max("v")}, key="house", time="ts")
    frame = read_slices(spark, trees.folders)
    with pytest.raises(InputError, match="these slices belong to another query"):
        other.finish(slices_in(frame))
    with pytest.raises(Exception, match="these slices belong to another query"):
        finish_slices(other, frame).toArrow()
