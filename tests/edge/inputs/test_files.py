"""Files and growing folders as inputs: each event once, in order, across restarts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from paneflow.engines.edge.inputs import file_formats, files
from paneflow.engines.edge.inputs.file_positions import Place, pack, unpack
from paneflow.engines.edge.inputs.files import FileInput
from paneflow.errors import InputError
from tests.edge.inputs.children import SCHEMA, Child, Log, events


def as_ndjson(table: pa.Table, path: Path) -> None:
    rows = table.to_pylist()
    lines = [json.dumps(row | {"ts": row["ts"].isoformat(), "more": {}}) + "\n" for row in rows]
    path.write_text("\n".join(lines))


def as_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=7)


def as_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=7)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "plugs.parquet": lambda table, path: pq.write_table(table, path, row_group_size=9),
    "plugs.csv": lambda table, path: pa_csv.write_csv(table, path),
    "plugs.ndjson": as_ndjson,
    "plugs.jsonl": as_ndjson,
    "plugs.arrow": as_arrow,
    "plugs.ipc": as_stream,
    "plugs.feather": lambda table, path: feather.write_feather(table, path),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of which a small file has several."""
    monkeypatch.setattr(file_formats, "PIECE", 4)
    monkeypatch.setattr(file_formats, "_BLOCK", 700)


def reading(path: Path, log: Log, **options: object) -> Child:
    return Child(FileInput("files", path, SCHEMA, "ts", **options), log)  # type: ignore[arg-type]


def read(path: Path, **options: object) -> Log:
    """Everything, until the source has ended."""
    log = Log()
    child = reading(path, log, **options)
    child.run_until(lambda: log.ended)
    return log


@pytest.mark.parametrize("name", WRITERS)
def test_the_events_of_a_file_arrive_in_order_and_in_pieces(tmp_path: Path, name: str) -> None:
    extended = events(*range(50)).append_column("note", pa.array(["?"] * 50))
    WRITERS[name](extended, tmp_path / name)
    log = read(tmp_path / name)
    assert log.of(f"files/{name}", "load") == list(range(50))
    assert len(log.arrived) > 10
    positions = [part.position for part in log.arrived]
    assert positions == sorted(set(positions))
    assert all(part.events.schema.equals(SCHEMA) for part in log.arrived if part.events)
    assert [part.ended for part in log.arrived] == [False] * (len(log.arrived) - 1) + [True]


@pytest.mark.parametrize("name", WRITERS)
def test_a_child_that_starts_again_continues_behind_its_log(tmp_path: Path, name: str) -> None:
    WRITERS[name](events(*range(50)), tmp_path / name)
    log = Log()
    while not log.ended:
        child = reading(tmp_path / name, log)
        child.write(child.read(most=3))
        child.read(most=1)
        child.input.close()
    assert log.of(f"files/{name}", "load") == list(range(50))


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for k, name in enumerate(WRITERS):
        WRITERS[name](events(k, k + 0.5), tmp_path / f"{k}-{name}")
    (tmp_path / "_SUCCESS.csv").write_text("")
    (tmp_path / ".hidden.csv").write_text("")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "9-folder.csv").mkdir()
    log = read(tmp_path)
    assert log.of(f"files/{tmp_path.name}", "load") == [k / 2 for k in range(2 * len(WRITERS))]


def test_an_empty_folder_ends_at_once(tmp_path: Path) -> None:
    (part,) = read(tmp_path).arrived
    assert part.ended


def test_new_files_of_a_followed_folder_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LOOK_AGAIN", 0.01)
    log, source = Log(), f"files/{tmp_path.name}"
    child = reading(tmp_path, log, follow=True)
    for k in range(5):
        pq.write_table(events(k), tmp_path / f"{k}.parquet")
        child.run_until(lambda k=k: log.of(source, "load") == list(range(k + 1)))
        assert child.input.pause() == 0.01
        if k == 2:
            child = reading(tmp_path, log, follow=True)
    assert not log.ended


def test_a_new_file_between_those_that_were_read_is_an_error(tmp_path: Path) -> None:
    for name in ("a", "c"):
        pq.write_table(events(1), tmp_path / f"{name}.parquet")
    log = Log()
    child = reading(tmp_path, log, follow=True)
    child.run_until(lambda: len(log.arrived) == 2)
    pq.write_table(events(2), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has appeared, whose name sorts before c\."):
        child.run_until(lambda: len(log.arrived) > 2)
    with pytest.raises(InputError, match="not those that were read before"):
        reading(tmp_path, log)


def test_a_file_that_was_read_and_is_gone_is_an_error(tmp_path: Path) -> None:
    for name in "abc":
        pq.write_table(events(1), tmp_path / f"{name}.parquet")
    log = read(tmp_path)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InputError, match=r"keep the files that have been read.* nothing is there"):
        reading(tmp_path, log)


BAD_FILES = {
    "plugs.csv": b"ts,plug,load\n2024-01-01T00:00:00Z,a,much\n",
    "columns.csv": b"ts,plug\n2024-01-01T00:00:00Z,a\n",
    "time.csv": b"ts,plug,load\n,a,1.0\n",
    "plugs.ndjson": b'{"ts": "soon", "plug": "a", "load": 1.0}\n',
    "time.ndjson": b'{"plug": "a", "load": 1.0}\n',
    "plugs.parquet": b"PAR1 not really",
    "plugs.arrow": b"ARROW1 not really",
    "empty.arrow": b"",
    "empty.csv": b"",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    child = reading(tmp_path / name, Log())
    with pytest.raises(InputError, match=rf"{name} cannot be read as \w+: .+\. Correct the file"):
        child.read()


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    for name in ("plugs.parquet", "plugs.arrow"):
        WRITERS[name](events(1).drop(["load"]), tmp_path / name)
        with pytest.raises(InputError, match=r"column 'load' \(double\) is missing"):
            reading(tmp_path / name, Log()).read()


def test_a_format_may_be_given(tmp_path: Path) -> None:
    WRITERS["plugs.csv"](events(1, 2), tmp_path / "plugs.txt")
    assert read(tmp_path / "plugs.txt", format="csv").of("files/plugs.txt", "load") == [1, 2]
    with pytest.raises(InputError, match="does not tell its format"):
        reading(tmp_path / "plugs.txt", Log())
    with pytest.raises(InputError, match="'orc' is not a format"):
        reading(tmp_path / "plugs.txt", Log(), format="orc")


def test_what_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing cannot be read"):
        reading(tmp_path / "nothing", Log())
    with pytest.raises(InputError, match="only a folder can be followed"):
        reading(tmp_path / "nothing", Log(), follow=True)


def test_positions_grow_with_files_and_events() -> None:
    names = ["a", "b", "c"]
    places = [Place(f, e) for f, e in itertools.product(range(3), (0, 1, 2, 2**32 - 1))]
    packed = [pack(place, names) for place in [*places, Place(3, 0)]]
    assert packed == sorted(set(packed))
    assert [unpack(position, names) for position in packed[:-1]] == places
    assert max(packed) < 2**63
    with pytest.raises(InputError, match="at most 4,294,967,296 events in a file"):
        pack(Place(0, 2**32), names)
