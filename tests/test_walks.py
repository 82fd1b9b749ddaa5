"""The walks in docs/architecture.md, from a call to a row: short, and true."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, edge, windows as W

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
SOURCE = Path(pf.__file__).parent
STEP = re.compile(r"^\d+\. (↩ )?`([\w/]+\.py)`", re.MULTILINE)


def walks() -> dict[str, list[tuple[bool, str]]]:
    """For each walk, by its heading or the line above it: its files, and which are returns."""
    text = PAGE.read_text()
    found: dict[str, list[tuple[bool, str]]] = {}
    for block in re.split(r"\n\n(?=1\. `)", text)[1:]:
        above = text[: text.index(block)].rstrip().splitlines()[-1]
        steps = block.split("\n\n")[0]
        found[above.strip("# :")] = [(bool(back), file) for back, file in STEP.findall(steps)]
    return found


WALKS = walks()


def test_there_is_a_walk_for_every_entry() -> None:
    entries = "Query.over", "Spark stream", "write_stream", "single", "active", "agnostic", "tree"
    assert len(WALKS) == len(entries)
    for entry in entries:
        assert any(entry in title for title in WALKS)


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_is_short_and_its_files_exist(title: str) -> None:
    steps = WALKS[title]
    files = [file for back, file in steps if not back]
    assert len(files) == len(set(files)) <= 12
    assert sum(back for back, _ in steps) <= 3
    assert all((SOURCE / file).is_file() for file in files)
    for place, (back, file) in enumerate(steps):
        assert back == (file in [before for _, before in steps[:place]])


def entered(action: Callable[[], Any]) -> set[str]:
    """The files of paneflow in which a function was called, by any thread."""
    files: set[str] = set()

    def listen(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    threading.setprofile(listen)
    sys.setprofile(listen)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {
        str(Path(file).relative_to(SOURCE)) for file in files if Path(file).is_relative_to(SOURCE)
    }


@pytest.mark.parametrize(
    "title", [t for t in WALKS if "park" not in t and "write" not in t and "tree" not in t]
)
def test_an_event_passes_through_the_files_of_a_walk(title: str) -> None:
    n = 3000
    table = pa.table({"k": np.arange(n) % 5, "t": np.arange(n), "v": np.linspace(0, 1, n)})
    query = pf.Query(W.sliding(60, 10), {"sum": A.sum("v")}, key="k", time="t")

    def in_stream(strategy: str) -> None:
        with query.open(workers=2, strategy=strategy) as stream:
            stream.push(table)
            stream.finish()
            assert sum(rows.num_rows for rows in stream.results()) > 0

    strategy = next((s for s in ("single", "active", "agnostic") if f"`{s}`" in title), None)
    passed = entered(lambda: in_stream(strategy) if strategy else query.over(list_of(table)))
    assert {file for _, file in WALKS[title]} <= passed


def test_an_event_passes_through_the_files_of_the_walk_up_a_tree(tmp_path: Path) -> None:
    query = pf.Query(W.sliding(60, 10), {"sum": A.sum("v")}, key="k", time="t")
    table = pa.table({"k": [1, 2], "t": [10, 80], "v": [0.5, 1.5]})
    asked = edge.Question(query, table.schema)
    given: list[pa.Table] = []

    def in_tree() -> None:
        root = edge.root(
            asked, log=tmp_path / "r", children=["m"], on_rows=lambda rows, _: given.append(rows)
        )
        merge = edge.merge("m", asked, parent=root, log=tmp_path / "m", children=["c"])
        child = edge.child("c", asked, parent=merge, log=tmp_path / "c")
        with root, merge, child:
            with edge.sensor(child, "s") as sensor:
                sensor.push(table)
            for node in (child, merge, root):
                node.leave()
            root.join()

    passed = entered(in_tree)
    assert sum(rows.num_rows for rows in given) == 12
    (title,) = (title for title in WALKS if "tree" in title)
    assert {file for _, file in WALKS[title]} <= passed


def list_of(table: pa.Table) -> list[dict[str, Any]]:
    """The table as dicts, so that it has to be read and the rows have to be turned back."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
