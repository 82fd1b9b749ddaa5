"""A stream that an older paneflow has begun goes on where it stopped.

`recorded/version1.zip` holds checkpoints that the first version of the state has written, of the
queries in `_driver.py`, after three of six files. They are real ones, of a run on Spark, in which
the folder they lay in is called @FOLDER@.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A
from paneflow.engines.spark.slices.packing import from_bytes
from paneflow.engines.spark.versions import VERSION, stream_identity
from paneflow.windows import CLOSE_AFTER, CLOSE_BEFORE, OPEN, Custom, WindowClass
from tests.spark._driver import QUERIES, SCHEMA
from tests.spark.support import assert_same_set, in_order, read_files, write_files
from tests.spark.test_kill import fused
from tests.spark.test_streaming import passed

RECORDED = Path(__file__).parent / "recorded"


def unpacked(version: int, query: str, folder: Path) -> list[pa.Table]:
    """The files of a recorded stream, of which it has seen the first half."""
    events: dict[str, pa.Table] = {}
    with zipfile.ZipFile(io.BytesIO((RECORDED / f"version{version}.zip").read_bytes())) as archive:
        for name in archive.namelist():
            room, _, rest = name.partition("/")
            data = archive.read(name)
            if room == "in":
                events[rest] = from_bytes(data)
            elif room == query:
                path = folder / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data.replace(b"@FOLDER@", str(folder).encode()))
    return [events[name] for name in sorted(events)]


def since(query: pf.Query, parts: list[pa.Table], unit: int) -> pa.Table:
    """What comes of the second half: all rows but those of the first."""
    half = len(parts) // 2
    early = passed(query, pa.concat_tables(parts[:half]), unit)
    every = passed(query, pa.concat_tables(parts), unit)
    marks = [row_mark(row) for row in in_order(query, early).to_pylist()]
    fresh = [row_mark(row) not in marks for row in every.to_pylist()]
    assert 0 < fresh.count(False) == early.num_rows
    return every.filter(pa.array(fresh))


def row_mark(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("window", "k", "seq", "start"))


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("version", range(1, VERSION))
def test_older_state_is_gone_on_with(spark: Any, tmp_path: Path, version: int, query: str) -> None:
    asked, parts = QUERIES[query], unpacked(version, query, tmp_path)
    write_files(parts, tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", SCHEMA)
    given: list[pa.Table] = []
    writer = asked.over(frame).writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "composed-checkpoint"))
    writer = writer.foreachBatch(lambda batch, _: given.append(batch.toArrow()))
    streams = [
        writer.start(),
        asked.write_stream(
            frame, tmp_path / "fused", tmp_path / "fused-checkpoint", availableNow=True
        ),
    ]
    for stream in streams:
        stream.awaitTermination()
    assert_same_set(asked, pa.concat_tables(given), since(asked, parts, 1000))
    assert_same_set(asked, fused(tmp_path), since(asked, parts, 1))
    [commit] = (tmp_path / "fused-checkpoint" / "paneflow").glob("commit*.json")
    assert json.loads(commit.read_text())["version"] == VERSION


def test_every_older_version_is_recorded() -> None:
    recorded = {path.name for path in RECORDED.iterdir()}
    assert recorded == {f"version{version}.zip" for version in range(1, VERSION)}


def test_another_step_is_another_query() -> None:
    @dataclass(frozen=True)
    class Every(Custom):
        window_class: ClassVar[WindowClass] = WindowClass.FCF
        columns: ClassVar[tuple[str, ...]] = ()
        initial: ClassVar[tuple[Any, ...]] = (0,)

        @staticmethod
        def step(state: tuple[Any, ...], t: int) -> tuple[tuple[Any, ...], int]:
            return state, OPEN | CLOSE_AFTER

    first = stream_identity(pf.Query(Every(), {"n": A.count()}))
    assert first == stream_identity(pf.Query(Every(), {"n": A.count()}))

    def later(state: tuple[Any, ...], t: int) -> tuple[tuple[Any, ...], int]:
        return state, OPEN | CLOSE_BEFORE

    Every.step = staticmethod(later)  # type: ignore[method-assign]
    assert stream_identity(pf.Query(Every(), {"n": A.count()})) != first
