"""A checkpoint that is damaged is refused in words, or it is not damaged where it matters.

No Spark is needed: what is damaged here are paneflow's own files, and `Memory` alone reads them.
Spark has checks of its own for its part. What older versions wrote has no checksums: there a
damage may go unseen, as it did then, but it never ends in an error from inside.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.open_windows import Held, OpenWindows
from paneflow.engines.spark.sinks.memory import Memory
from paneflow.engines.spark.slices.chunked import numbered, stored_after
from paneflow.engines.spark.slices.packing import from_bytes
from paneflow.engines.spark.storage.local_files import LocalFiles
from paneflow.engines.spark.versions import VERSION
from paneflow.spark import progress
from tests.spark._driver import QUERIES, SCHEMA
from tests.spark.test_upgrade import RECORDED

State = tuple[dict[str, Any], Held]


def events(batch: int) -> pa.Table:
    times = [1_700_000_000_000_000 + batch * 5_000_000 + k * 700_000 for k in range(8)]
    columns = [["a", "b", None, "a"] * 2, times, [k / 3 for k in range(8)], range(8)]
    return pa.table([pa.array(c) for c in columns], names=SCHEMA.names).cast(SCHEMA)


def written(folder: Path, query: pf.Query, batches: int = 4) -> None:
    """A checkpoint as `EachBatch` leaves it behind."""
    memory = Memory(LocalFiles(folder), query, beats=False)
    windows = OpenWindows(query, SCHEMA)
    held = memory.begin(windows.layout, SCHEMA)
    before = None
    for batch in range(batches):
        slices, came = windows.received([windows.sent(events(batch))])
        watermark = 1_700_000_000_000_000 + batch * 5_000_000
        _, held, _ = windows.advance(held, numbered(slices, batch), came, before, watermark)
        kept, alive, fresh = stored_after(held.slices, batch)
        held, before = Held(kept, held.events, held.marks), watermark
        state = {"batch": batch, "seen": watermark, "watermark": watermark, "late": 3, "dropped": 1}
        memory.commit(fresh, held, chunks=sorted(alive), **state)


def recorded(folder: Path, version: int, query: str) -> None:
    """The checkpoint of an older version."""
    with zipfile.ZipFile(io.BytesIO((RECORDED / f"version{version}.zip").read_bytes())) as archive:
        prefix = f"{query}/fused-checkpoint/paneflow/"
        for name in archive.namelist():
            if name.startswith(prefix):
                path = folder / "paneflow" / name.removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))


def read(folder: Path, query: pf.Query) -> State:
    """What a run would go on from."""
    memory = Memory(LocalFiles(folder), query, beats=False)
    windows = OpenWindows(query, SCHEMA)
    held = memory.load(windows.layout, SCHEMA)
    return memory.state, held


def same(one: State, other: State) -> bool:
    (state, held), (state_, held_) = one, other
    tables = [(held.slices, held_.slices), (held.events, held_.events)]
    if held.marks is not None and held_.marks is not None:
        tables.append((held.marks, held_.marks))
    return state == state_ and all(a.equals(b) for a, b in tables)


def damage(folder: Path, r: random.Random) -> str:
    """Do something to one of the files."""
    paths = sorted(path for path in (folder / "paneflow").iterdir() if path.is_file())
    path, other = r.choice(paths), r.choice(paths)
    data = bytearray(path.read_bytes())
    kind = r.choice(["flip", "flip", "flip", "cut", "empty", "grow", "remove", "swap", "zeros"])
    if kind == "flip":
        for _ in range(r.choice([1, 1, 4])):
            data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    elif kind == "cut":
        del data[r.randrange(len(data)) :]
    elif kind == "empty":
        data.clear()
    elif kind == "grow":
        data += r.randbytes(r.randint(1, 40))
    elif kind == "zeros":
        start = r.randrange(len(data))
        data[start : start + 64] = bytes(len(data[start : start + 64]))
    elif kind == "swap":
        data = bytearray(other.read_bytes())
    if kind == "remove":
        path.unlink()
    else:
        path.write_bytes(data)
    return f"{kind} {path.name}"


def survives(folder: Path, query: pf.Query, whole: State, checked: bool, done: str) -> bool:
    """Whether a damaged checkpoint is refused; if it is read, it is what was written."""
    for ask in (lambda: progress(folder), lambda: read(folder, query)):
        try:
            found = ask()
        except pf.PaneflowError as error:
            assert any(word in str(error) for word in ("checkpoint", "write_stream")), done
        except Exception as error:
            raise AssertionError(f"{done}: {error!r}") from error
        else:
            if checked and isinstance(found, tuple):
                assert same(found, whole), done
                return False
    return True


def damaged_at_random(tmp_path: Path, query: pf.Query, seeds: range, checked: bool) -> None:
    whole = read(tmp_path / "whole", query)
    refused = 0
    for seed in seeds:
        folder = tmp_path / "damaged"
        shutil.copytree(tmp_path / "whole", folder)
        done = damage(folder, random.Random(seed))
        refused += survives(folder, query, whole, checked, f"seed {seed}: {done}")
        shutil.rmtree(folder)
    assert refused > len(seeds) / 3


@pytest.mark.parametrize("query", QUERIES)
def test_random_damage(tmp_path: Path, query: str) -> None:
    written(tmp_path / "whole", QUERIES[query])
    damaged_at_random(tmp_path, QUERIES[query], range(60), checked=True)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("version", range(1, VERSION))
def test_random_damage_to_what_an_older_version_wrote(
    tmp_path: Path, version: int, query: str
) -> None:
    recorded(tmp_path / "whole", version, query)
    damaged_at_random(tmp_path, QUERIES[query], range(40), checked=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", QUERIES)
def test_much_random_damage(tmp_path: Path, query: str) -> None:
    written(tmp_path / "whole", QUERIES[query])
    damaged_at_random(tmp_path, QUERIES[query], range(1000, 20_000), checked=True)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for name, query in QUERIES.items():
        written(tmp_path / name, query)
        state, held = read(tmp_path / name, query)
        assert state["batch"] == 3 and held.slices.num_rows
        assert progress(tmp_path / name).late == 3


def committed(folder: Path) -> Path:
    """The commit; there is never more than one."""
    [path] = (folder / "paneflow").glob("commit-*.json")
    return path


def refusal(folder: Path, query: pf.Query) -> str:
    with pytest.raises(pf.InputError) as found:
        read(folder, query)
    return str(found.value)


def test_a_checkpoint_without_its_commit(tmp_path: Path) -> None:
    written(tmp_path, QUERIES["slices"])
    committed(tmp_path).unlink()
    assert "commit is missing" in refusal(tmp_path, QUERIES["slices"])


def test_spark_has_done_batches_of_which_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "spark" / "commits").mkdir(parents=True)
    (tmp_path / "spark" / "commits" / "0").write_text("v1\n{}")
    assert "commit is missing" in refusal(tmp_path, QUERIES["slices"])


def test_a_commit_under_the_number_of_another(tmp_path: Path) -> None:
    written(tmp_path, QUERIES["slices"])
    commit = committed(tmp_path)
    commit.rename(commit.with_name("commit-000000000099.json"))
    assert "commit-000000000099.json holds no state" in refusal(tmp_path, QUERIES["slices"])


def test_a_commit_in_which_a_number_was_changed(tmp_path: Path) -> None:
    written(tmp_path, QUERIES["slices"])
    commit = committed(tmp_path)
    commit.write_text(json.dumps(json.loads(commit.read_text()) | {"late": 4}))
    assert "is not as it was written" in refusal(tmp_path, QUERIES["slices"])


def test_files_of_another_checkpoint(tmp_path: Path) -> None:
    query = QUERIES["slices"]
    written(tmp_path / "one", query)
    written(tmp_path / "two", query, batches=3)
    for path in (tmp_path / "two" / "paneflow").glob("slices-*.arrow"):
        table = from_bytes(path.read_bytes())
        assert table.num_rows
        shutil.copy(path, tmp_path / "one" / "paneflow" / "slices-000000003-000001.arrow")
    assert "slices-000000003-000001.arrow is not the file" in refusal(tmp_path / "one", query)


def test_another_querys_checkpoint_and_a_newer_versions(tmp_path: Path) -> None:
    written(tmp_path, QUERIES["slices"])
    assert "another query" in refusal(tmp_path, QUERIES["events"])
    commit = committed(tmp_path)
    commit.write_text(json.dumps(json.loads(commit.read_text()) | {"version": VERSION + 1}))
    assert f"version {VERSION + 1}" in refusal(tmp_path, QUERIES["slices"])


@pytest.mark.processes
def test_without_pyspark_the_session_says_what_to_install() -> None:
    script = """
import sys
class Missing:
    def find_spec(self, name, *rest):
        if name.split(".")[0] == "pyspark":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import paneflow, paneflow.spark
try:
    paneflow.spark.session()
except paneflow.PaneflowError as error:
    print(error)
"""
    paths = os.pathsep.join(p for p in sys.path if p)
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 'pip install "paneflow[spark]"' in said


def test_windows_that_are_stated_alike_are_read(tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("10 s"), {"n": A.count()}, "k", lateness="3 s")
    written(tmp_path, query)
    again = pf.Query(W.tumbling("10000 ms"), {"n": A.count()}, "k", lateness="3 s")
    assert same(read(tmp_path, again), read(tmp_path, query))
