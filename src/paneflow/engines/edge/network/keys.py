"""Keys of nodes, as files: who a node is, and whom it knows.

A folder holds a node's own pair of keys, `NAME.key` and `NAME.key_secret`, and the public keys,
`OTHER.key`, of those it talks to. Copying a public key into the folder is how a node is let in, and
removing it is how it is kept out. The files are certificates as ZeroMQ's own tools write them.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

import zmq
import zmq.auth

from paneflow.errors import PaneflowError

PUBLIC = ".key"
SECRET = ".key_secret"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class KeysError(PaneflowError):
    """Keys that are missing or damaged, or that people can read whom they do not belong to."""


class Keys(NamedTuple):
    """A node's pair of CURVE keys, in ZeroMQ's text form (Z85).

    Example:
        >>> import tempfile
        >>> from paneflow import edge
        >>> keys = edge.make_keys(tempfile.mkdtemp(), "kitchen")
        >>> keys.name, len(keys.public), len(keys.secret)
        ('kitchen', 40, 40)
    """

    name: str
    public: bytes
    secret: bytes


def make_keys(folder: str | Path, name: str) -> Keys:
    """Write a new pair of keys: the public one for everybody, the secret one for its owner.

    Args:
        folder: Where `NAME.key` and `NAME.key_secret` are written.
        name: Whose keys they are.

    Returns:
        The keys.

    Example:
        >>> import os, tempfile
        >>> from paneflow import edge
        >>> folder = tempfile.mkdtemp()
        >>> keys = edge.make_keys(folder, "kitchen")
        >>> sorted(os.listdir(folder))
        ['kitchen.key', 'kitchen.key_secret']
    """
    if not _NAME.fullmatch(name):
        raise KeysError(
            f"{name!r} cannot be the name of a node with keys: its files are named after it. Use "
            "letters, digits, '_', '-' and '.', and not '-' or '.' first"
        )
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    if any((into / f"{name}{suffix}").exists() for suffix in (PUBLIC, SECRET)):
        raise KeysError(
            f"{into} has keys of {name!r} already, and whoever knows them would not know new ones. "
            f"Remove {name}{PUBLIC} and {name}{SECRET} first if they are to be replaced"
        )
    # Nobody else may enter the temporary folder, so the secret cannot be read, not even briefly.
    with tempfile.TemporaryDirectory(dir=into) as beside:
        public, secret = zmq.auth.create_certificates(beside, name)
        os.chmod(secret, stat.S_IRUSR | stat.S_IWUSR)
        os.chmod(public, stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH)
        os.rename(secret, into / f"{name}{SECRET}")
        os.rename(public, into / f"{name}{PUBLIC}")
    return read_keys(into, name)


def read_keys(folder: str | Path, name: str) -> Keys:
    """A node's own keys, from its folder.

    Args:
        folder: The folder of keys.
        name: Whose keys.

    Returns:
        The keys.

    Example:
        >>> import tempfile
        >>> from paneflow import edge
        >>> folder = tempfile.mkdtemp()
        >>> edge.make_keys(folder, "kitchen") == edge.read_keys(folder, "kitchen")
        True
    """
    file = Path(folder) / f"{name}{SECRET}"
    if not file.exists():
        raise KeysError(
            f"{file} is missing: {name!r} needs keys of its own. "
            f"Make them with `paneflow keys make {folder} {name}`"
        )
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeysError(
            f"{file} is a secret that others on this machine can read. "
            f"Run `chmod 600 {file}`, or make new keys if somebody may have read it"
        )
    public, secret = _load(file)
    if secret is None:
        raise KeysError(f"{file} holds no secret key. Copy the file that was made with the key")
    return Keys(name, public, secret)


def read_public(folder: str | Path, name: str) -> bytes:
    """The public key of another node, from one's own folder.

    Args:
        folder: The folder of keys.
        name: The name of the other node.

    Returns:
        The key.

    Example:
        >>> import tempfile
        >>> from paneflow import edge
        >>> folder = tempfile.mkdtemp()
        >>> edge.make_keys(folder, "kitchen").public == edge.read_public(folder, "kitchen")
        True
    """
    file = Path(folder) / f"{name}{PUBLIC}"
    if not file.exists():
        raise KeysError(
            f"{file} is missing: the public key of {name!r} is needed to recognise it. "
            f"Copy {name}{PUBLIC} from where its keys were made"
        )
    return _load(file)[0]


def known_keys(folder: str | Path) -> dict[str, bytes]:
    """The public keys in a folder, by name."""
    return {file.stem: _load(file)[0] for file in sorted(Path(folder).glob(f"*{PUBLIC}"))}


def _load(file: Path) -> tuple[bytes, bytes | None]:
    try:
        public, secret = zmq.auth.load_certificate(file)
    except (OSError, ValueError) as error:
        raise KeysError(f"{file} cannot be read as a key: {error}") from error
    if any(len(key) != 40 for key in (public, secret) if key is not None):
        raise KeysError(f"{file} is damaged: a key is 40 characters long")
    return public, secret
