"""Whatever is left of a log after a crash can be read, and damage is not mistaken for a crash."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paneflow.engines.edge.journal import Journal, JournalError
from tests.edge.test_journal import recovered, written

COMMITS = [[b"one", b"two"], [b""], [b"three" * 5], [b"four"]]
SEGMENT = "segment-00000001.log"


def starts_of_groups(folder: Path) -> list[int]:
    """Where each commit begins in the first segment, and where the last ends."""
    ends = []
    with Journal(folder) as journal:
        ends.append(journal.size)
        for records in COMMITS:
            journal.append(*records)
            journal.commit()
            ends.append(journal.size)
    return ends


def test_a_log_cut_anywhere_gives_all_commits_before_and_goes_on(tmp_path: Path) -> None:
    ends = starts_of_groups(tmp_path / "whole")
    data = (tmp_path / "whole" / SEGMENT).read_bytes()
    assert len(data) == ends[-1]
    folder = tmp_path / "cut"
    for size in range(len(data) + 1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / SEGMENT).write_bytes(data[:size])
        whole = sum(end <= size for end in ends[1:])
        expected = [record for records in COMMITS[:whole] for record in records]
        with Journal(folder, sync=False) as journal:
            assert journal.recover() == (None, expected)
            journal.append(b"and on")
            journal.commit()
        assert recovered(folder) == [*expected, b"and on"]


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xf5grp" * 100, b"noise" * 100])
def test_what_follows_the_last_commit_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    """A file system may have made a file longer without having written what is in it."""
    written(tmp_path, COMMITS)
    with (tmp_path / SEGMENT).open("ab") as file:
        file.write(tail)
    assert recovered(tmp_path) == [record for records in COMMITS for record in records]
    assert (tmp_path / SEGMENT).stat().st_size < 5000


def test_a_changed_byte_before_the_last_commit_is_an_error(tmp_path: Path) -> None:
    ends = starts_of_groups(tmp_path)
    data = (tmp_path / SEGMENT).read_bytes()
    for at in range(ends[-2]):
        changed = bytearray(data)
        changed[at] ^= 4
        (tmp_path / SEGMENT).write_bytes(changed)
        with pytest.raises(JournalError, match=rf"{SEGMENT} (is|was not)"):
            Journal(tmp_path)
        assert (tmp_path / SEGMENT).read_bytes() == changed
    (tmp_path / SEGMENT).write_bytes(data)
    assert recovered(tmp_path)[0] == b"one"


def test_damage_is_reported_with_its_place(tmp_path: Path) -> None:
    ends = starts_of_groups(tmp_path)
    with (tmp_path / SEGMENT).open("r+b") as file:
        file.seek(ends[1] + 3)
        file.write(b"?")
    with pytest.raises(JournalError, match=f"{SEGMENT} is damaged at byte {ends[1]}: .* restore"):
        Journal(tmp_path)


def test_files_of_another_version_are_refused(tmp_path: Path) -> None:
    written(tmp_path, COMMITS)
    data = bytearray((tmp_path / SEGMENT).read_bytes())
    data[8] = 9
    (tmp_path / SEGMENT).write_bytes(data)
    with pytest.raises(JournalError, match=r"is of version 9 of the log, but .* reads version 1"):
        Journal(tmp_path)


def test_a_damaged_snapshot_is_an_error(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.snapshot({"a": 1}, {"x": pa.table({"x": [1]})})
    path = tmp_path / "snapshot-00000002.state"
    data = path.read_bytes()
    for size in range(0, len(data), 5):
        path.write_bytes(data[:size])
        with pytest.raises(JournalError, match=r"snapshot-00000002.state (is|was not)"):
            Journal(tmp_path)
    for at in range(0, len(data), 5):
        changed = bytearray(data)
        changed[at] ^= 64
        path.write_bytes(changed)
        with pytest.raises(JournalError, match=r"snapshot-00000002.state (is|was not)"):
            Journal(tmp_path)


def test_a_missing_segment_is_an_error(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.snapshot({}, {})
    (tmp_path / "segment-00000002.log").unlink()
    with pytest.raises(JournalError, match=r"segment-00000002.log is missing"):
        Journal(tmp_path)


class Killed(BaseException):
    """Stands for the death of the process: nothing catches it, so nothing is put right."""


def test_a_crash_anywhere_in_a_snapshot_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before each of the calls that change files."""
    outcomes = []
    for calls in range(40):
        folder = tmp_path / str(calls)
        journal = Journal(folder)
        journal.append(b"one")
        journal.snapshot({"n": 1}, {})
        journal.append(b"two")
        journal.commit()
        left = [calls]
        with monkeypatch.context() as patched:
            for name in ["open", "pwrite", "replace", "unlink", "ftruncate", "fsync"]:
                patched.setattr(os, name, dying(getattr(os, name), left))
            try:
                journal.snapshot({"n": 2}, {})
            except Killed:
                done = False
            else:
                done = True
        journal.close()
        with Journal(folder) as journal:
            snapshot, records = journal.recover()
            assert snapshot is not None
            outcomes.append((snapshot.about["n"], tuple(records)))
            journal.append(b"three")
            journal.commit()
        with Journal(folder) as journal:
            assert journal.recover()[1] == [*records, b"three"]
        if done:
            break
    else:
        pytest.fail("the snapshot was never complete")
    assert calls > 8
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {(1, (b"two",)), (2, ())}


def dying(call: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """A call before which the process dies, once so many others have been made."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return call(*args, **kwargs)

    return counted


def fill_up(folder: Path, most: int) -> None:
    """Write until no more fits into a file, then see that the journal still works."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    with Journal(folder) as journal:
        with pytest.raises(JournalError, match="cannot be written"):
            journal.snapshot({"text": "x" * 2 * most}, {})
        assert sorted(os.listdir(folder)) == ["lock", SEGMENT]
        for number in range(1000):
            journal.append(str(number).encode() * 100)
            try:
                journal.commit()
            except JournalError as error:
                assert "cannot be written: File too large; make room" in str(error)
                break
        else:
            raise AssertionError("it never became full")
        assert (folder / SEGMENT).stat().st_size == journal.size
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        journal.append(b"room again")
        journal.commit()
    print(number)


@pytest.mark.processes
def test_a_full_disk_is_an_error_and_leaves_the_log_readable(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.edge.test_journal_crashes import fill_up\n"
        "fill_up(Path(sys.argv[1]), 20_000)"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path)]
    ended = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    last = int(ended.stdout)
    expected = [str(number).encode() * 100 for number in range(last + 1)]
    assert recovered(tmp_path) == [*expected, b"room again"]
