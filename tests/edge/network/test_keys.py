"""Keys as files: who may read them, and what is said when they are missing or damaged."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from paneflow.engines.edge.network.addresses import stays_here
from paneflow.engines.edge.network.keys import (
    KeysError,
    known_keys,
    make_keys,
    read_keys,
    read_public,
)


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_keys_are_read_as_they_were_made(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "keys", "root")
    assert read_keys(tmp_path / "keys", "root") == made
    assert read_public(tmp_path / "keys", "root") == made.public


def test_only_the_owner_can_read_the_secret(tmp_path: Path) -> None:
    make_keys(tmp_path, "root")
    assert mode(tmp_path / "root.key_secret") == 0o600
    assert mode(tmp_path / "root.key") == 0o644
    assert len(list(tmp_path.iterdir())) == 2


def test_the_public_file_does_not_hold_the_secret(tmp_path: Path) -> None:
    made = make_keys(tmp_path, "root")
    assert made.secret not in (tmp_path / "root.key").read_bytes()


def test_keys_are_not_overwritten(tmp_path: Path) -> None:
    made = make_keys(tmp_path, "root")
    with pytest.raises(KeysError, match="already"):
        make_keys(tmp_path, "root")
    assert read_keys(tmp_path, "root") == made


@pytest.mark.parametrize("name", ["", "../root", "a/b", ".hidden", "-x", "a b"])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeysError, match="name of a node"):
        make_keys(tmp_path, name)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    make_keys(tmp_path, "root")
    (tmp_path / "root.key_secret").chmod(0o640)
    with pytest.raises(KeysError, match="chmod 600"):
        read_keys(tmp_path, "root")


def test_missing_keys_say_which_command_makes_them(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match="paneflow keys make"):
        read_keys(tmp_path, "root")
    with pytest.raises(KeysError, match=r"Copy root\.key"):
        read_public(tmp_path, "root")


@pytest.mark.parametrize(
    "text", ["", "nonsense", 'curve\n    public-key = "short"\n    secret-key = "short"\n']
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    make_keys(tmp_path, "root")
    (tmp_path / "root.key_secret").write_text(text)
    with pytest.raises(KeysError, match=r"root\.key_secret"):
        read_keys(tmp_path, "root")


def test_known_are_the_public_keys_in_the_folder(tmp_path: Path) -> None:
    names = ["child-1", "child-2", "root"]
    made = {name: make_keys(tmp_path, name).public for name in names}
    assert known_keys(tmp_path) == made


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:1",
        "tcp://127.8.0.1:*",
        "tcp://[::1]:1",
        "tcp://localhost:1",
        "ipc:///tmp/x",
    ],
)
def test_addresses_of_this_machine(address: str) -> None:
    assert stays_here(address)


@pytest.mark.parametrize(
    "address",
    ["tcp://*:1", "tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://10.0.0.1:1", "tcp://root.example:1"],
)
def test_addresses_that_others_can_reach(address: str) -> None:
    assert not stays_here(address)
