"""Of several runs of a stream only the newest can write, and it misses nothing of those before."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

import paneflow as pf
from paneflow.engines.spark.sinks.lease import Lease


def put(lease: Lease, path: Path, text: str) -> None:
    def write(draft: Path) -> None:
        draft.write_text(text)

    lease.replace(path, write)


def test_an_older_run_cannot_write_any_more(tmp_path: Path) -> None:
    old = Lease(tmp_path, "state")
    put(old, tmp_path / "file", "old")
    new = Lease(tmp_path, "state")
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.check()
    with pytest.raises(pf.PaneflowError, match="another run"):
        put(old, tmp_path / "file", "old again")
    assert (tmp_path / "file").read_text() == "old"
    put(new, tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"


def test_a_draft_that_was_begun_before_the_newer_run_came_stays_a_draft(tmp_path: Path) -> None:
    old = Lease(tmp_path, "state")

    def slowly(draft: Path) -> None:
        draft.write_text("old")
        put(Lease(tmp_path, "state"), tmp_path / "file", "new")

    with pytest.raises(pf.PaneflowError, match="another run"):
        old.replace(tmp_path / "file", slowly)
    assert (tmp_path / "file").read_text() == "new"


def test_streams_of_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    rows, late = Lease(tmp_path, "rows"), Lease(tmp_path, "late")
    put(rows, tmp_path / "rows-1", "r")
    put(late, tmp_path / "late-1", "l")
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"rows-1", "late-1"}


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    lease = Lease(tmp_path, "state")

    def full(draft: Path) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        lease.replace(tmp_path / "file", full)


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_race_lose_no_update(tmp_path: Path, seed: int) -> None:
    """Each run reads a counter once, then counts on by itself, as a stream does with its state."""
    counter = tmp_path / "counter"
    written: list[str] = []
    lost: list[str] = []

    def run(r: random.Random) -> None:
        for _ in range(8):
            try:
                lease = Lease(tmp_path, "state")
                read = counter.read_text() if counter.exists() else ""
                for _ in range(r.randrange(1, 30)):
                    read += r.choice("abcdefgh")
                    put(lease, counter, read)
                    written.append(read[-1])
            except pf.PaneflowError as error:
                lost.append(str(error))

    runs = [threading.Thread(target=run, args=(random.Random(f"{seed} {k}"),)) for k in range(6)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    assert len(counter.read_text()) == len(written)
    assert all("another run" in why for why in lost)
    assert len(list(tmp_path.glob(".state-run-*"))) == 1
