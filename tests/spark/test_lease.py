"""Of several runs of a stream only the newest can commit, and it misses nothing of those before."""

from __future__ import annotations

import random
import re
import threading
from pathlib import Path

import pytest

import paneflow as pf
from paneflow.engines.spark.sinks.lease import Lease
from paneflow.engines.spark.storage.local_files import LocalFiles


def taken(folder: Path, who: str) -> tuple[Lease, str]:
    """The lease of a run that takes it, and what was committed last."""
    lease = Lease(LocalFiles(folder))
    while True:
        number, before = lease.newest() or (0, b"")
        if lease.take(number + 1, before + f"({who})".encode()):
            return lease, before.decode()


def committed(folder: Path) -> str:
    newest = Lease(LocalFiles(folder)).newest()
    assert newest is not None
    return newest[1].decode()


def test_an_older_run_cannot_commit_any_more(tmp_path: Path) -> None:
    old, _ = taken(tmp_path, "a")
    old.commit(b"old")
    new, before = taken(tmp_path, "b")
    assert before == "old"
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.check()
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.commit(b"old again")
    new.check()
    new.commit(b"new")
    assert committed(tmp_path) == "new"


def test_a_number_that_is_free_again_is_of_no_use_to_an_older_run(tmp_path: Path) -> None:
    old, _ = taken(tmp_path, "a")
    new, _ = taken(tmp_path, "b")
    for text in (b"1", b"2", b"3"):
        new.commit(text)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.commit(b"old")
    assert committed(tmp_path) == "3"
    new.commit(b"4")
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_killed_run_has_left_of_a_commit_is_removed(tmp_path: Path) -> None:
    taken(tmp_path, "a")
    (tmp_path / f".commit-000000000001.json.{'0' * 32}.draft").write_text("half")
    lease, _ = taken(tmp_path, "b")
    lease.commit(b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["commit-000000000003.json"]


def test_a_folder_that_is_gone_is_a_lost_lease(tmp_path: Path) -> None:
    lease, _ = taken(tmp_path, "a")
    (tmp_path / "commit-000000000001.json").unlink()
    with pytest.raises(pf.PaneflowError, match="or the folder was removed"):
        lease.check()


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_race_lose_no_commit(tmp_path: Path, seed: int) -> None:
    """Each run reads a text once, then adds to it by itself, as a stream does with its state.

    What a run was refused may have counted all the same, but never twice.
    """
    tried: list[str] = []
    written: list[str] = []
    lost: list[str] = []

    def run(r: random.Random, who: int) -> None:
        for round_ in range(8):
            lease = Lease(LocalFiles(tmp_path))
            number, before = lease.newest() or (0, b"")
            text = before.decode()
            try:
                for step in range(r.randrange(2, 30)):
                    added = f"({who}.{round_}.{step})"
                    tried.append(added)
                    text += added
                    if step:
                        lease.commit(text.encode())
                    elif not lease.take(number + 1, text.encode()):
                        break
                    written.append(added)
            except pf.PaneflowError as error:
                lost.append(str(error))

    runs = [threading.Thread(target=run, args=(random.Random(seed + k), k)) for k in range(6)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    found = re.findall(r"\([^)]*\)", committed(tmp_path))
    assert len(set(found)) == len(found)
    assert set(written) <= set(found) <= set(tried)
    assert all("another run" in why for why in lost)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_commit_that_comes_too_late_leaves_nothing(tmp_path: Path) -> None:
    old, _ = taken(tmp_path, "a")
    new, _ = taken(tmp_path, "b")
    new.commit(b"new")
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.commit(b"old")
    assert [path.name for path in tmp_path.iterdir()] == ["commit-000000000003.json"]
