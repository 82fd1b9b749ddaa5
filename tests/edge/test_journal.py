"""Records that were committed are found again, and snapshots take their place."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from paneflow.engines.edge.journal import Journal, JournalError

STATE = {
    "open": pa.table({"start": pa.array([1, 2], pa.timestamp("us")), "runs": [[0.5], None]}),
    "keys": pa.table({"city": pa.array(["Ulm", "Ulm", "Köln"]).dictionary_encode()}),
    "none": pa.table({"x": pa.array([], pa.int64())}),
}


def recovered(folder: Path) -> list[bytes]:
    """The records of a folder, which must have no snapshot."""
    with Journal(folder) as journal:
        snapshot, records = journal.recover()
    assert snapshot is None
    return records


def written(folder: Path, commits: list[list[bytes]]) -> None:
    with Journal(folder) as journal:
        for records in commits:
            journal.append(*records)
            journal.commit()


def test_a_new_folder_has_neither_snapshot_nor_records(tmp_path: Path) -> None:
    assert recovered(tmp_path / "a" / "b") == []
    assert recovered(tmp_path / "a" / "b") == []


def test_what_was_committed_is_found_again(tmp_path: Path) -> None:
    written(tmp_path, [[b"one", b"", b"two"], [], [b"x" * 1_000_000]])
    written(tmp_path, [[b"three"]])
    assert recovered(tmp_path) == [b"one", b"", b"two", b"x" * 1_000_000, b"three"]


def test_what_was_not_committed_is_gone(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.commit()
        journal.append(b"two")
    assert recovered(tmp_path) == [b"one"]


@pytest.mark.parametrize("sync", [True, False])
def test_what_was_committed_has_been_forced_onto_the_disk_where_that_is_asked(
    tmp_path: Path, sync: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    with Journal(tmp_path, sync) as journal:
        monkeypatch.setattr(os, "fdatasync", lambda file: forced.append(os.fstat(file).st_size))
        journal.append(b"one", b"two")
        journal.commit()
        assert forced == ([journal.size] if sync else [])


@pytest.mark.parametrize("sync", [True, False])
def test_a_snapshot_takes_the_place_of_the_records_before_it(tmp_path: Path, sync: bool) -> None:
    with Journal(tmp_path, sync) as journal:
        journal.append(b"before")
        journal.snapshot({"watermark": 5, "children": ["a"]}, STATE)
        journal.append(b"after")
        journal.commit()
    with Journal(tmp_path, sync) as journal:
        snapshot, records = journal.recover()
        assert snapshot is not None
        assert snapshot.about == {"watermark": 5, "children": ["a"]}
        assert list(snapshot.tables) == list(STATE)
        for name, table in STATE.items():
            assert snapshot.tables[name].equals(table)
        assert records == [b"after"]
        journal.snapshot({}, {})
    with Journal(tmp_path, sync) as journal:
        assert journal.recover() == (({}, {}), [])
    assert sorted(os.listdir(tmp_path)) == [
        "lock",
        "segment-00000003.log",
        "snapshot-00000003.state",
    ]


def test_size_says_how_much_there_is_to_read(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        empty = journal.size
        journal.append(b"x" * 1000)
        journal.commit()
        full = journal.size
        assert full >= empty + 1000
    with Journal(tmp_path) as journal:
        assert journal.size == full
        journal.snapshot({}, {})
        assert journal.size == empty


def test_a_closed_journal_takes_no_records(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.close()
    journal.close()
    journal.append(b"one")
    with pytest.raises(JournalError, match="takes no more records: it was closed"):
        journal.commit()


def test_one_process_uses_a_folder(tmp_path: Path) -> None:
    with (
        Journal(tmp_path),
        pytest.raises(JournalError, match=f"in use by process {os.getpid()}: end it first"),
    ):
        Journal(tmp_path)
    assert recovered(tmp_path) == []


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(JournalError, match="file cannot be used for a log"):
        Journal(tmp_path / "file")


@pytest.mark.processes
def test_a_folder_is_free_again_when_its_process_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal\n"
        "from paneflow.engines.edge.journal import Journal\n"
        "journal = Journal(sys.argv[1])\n"
        "journal.append(b'one'); journal.commit(); journal.append(b'two')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert recovered(tmp_path) == [b"one"]


def test_random_steps_and_reopenings_lose_nothing(tmp_path: Path) -> None:
    rng = random.Random(5)
    journal = Journal(tmp_path, sync=False)
    expected: list[bytes] = []
    pending: list[bytes] = []
    state: dict[str, int] | None = None
    for step in range(300):
        action = rng.choices(["append", "commit", "snapshot", "reopen"], [8, 4, 1, 1])[0]
        if action == "append":
            pending.append(rng.randbytes(rng.choice([0, 1, 10, 1000])))
            journal.append(pending[-1])
        elif action == "commit":
            journal.commit()
            expected, pending = expected + pending, []
        elif action == "snapshot":
            state = {"step": step}
            journal.snapshot(state, {})
            expected, pending = [], []
        else:
            journal.close()
            journal = Journal(tmp_path, sync=False)
            snapshot, records = journal.recover()
            assert (snapshot.about if snapshot else None) == state
            assert records == expected
            pending = []
    journal.close()
