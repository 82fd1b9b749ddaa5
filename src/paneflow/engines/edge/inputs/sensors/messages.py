"""What sensors and a child tell each other, as bytes.

A sensor greets (HELLO), the child answers with what it takes and how far it has come (WELCOME),
then numbered batches go up and acknowledgements down. Every message has a head of sixteen bytes.
Events follow as an Arrow IPC stream in a frame of their own, so that they are not copied.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

import pyarrow as pa

from paneflow.errors import InputError

MAGIC = b"pfsn"
VERSION = 1
_HEAD = struct.Struct("<4sBBxxQ")

HELLO, WELCOME, BATCH, END, ACKNOWLEDGED, REFUSED = range(1, 7)

NAME_LENGTH = 200


class MessageError(InputError):
    """Bytes that are no message of this protocol, or a message of another version."""


class Head(NamedTuple):
    """What every message begins with."""

    kind: int
    number: int
    """Of a batch or an end; of the greeting, in a greeting and its answer."""


class Hello(NamedTuple):
    """A sensor says who it is."""

    name: str
    token: str
    """Drawn anew for every `Sensor`: another one of the same name is not the same sensor."""
    behind: int | None
    """The number behind which its batches begin; None if the child should say."""


class Welcome(NamedTuple):
    """A child says what it takes."""

    taken: int
    """The number of the last batch that it has from this sensor."""
    time: str
    message_bytes: int
    schema: pa.Schema


def write_head(kind: int, number: int) -> bytes:
    """The first sixteen bytes of a message."""
    return _HEAD.pack(MAGIC, VERSION, kind, number)


def read_head(data: bytes | memoryview) -> Head:
    """The head of a message.

    >>> read_head(write_head(BATCH, 7))
    Head(kind=3, number=7)
    """
    if len(data) < _HEAD.size or bytes(data[:4]) != MAGIC:
        raise MessageError(
            "this is no message of a paneflow sensor: connect with paneflow's Sensor, and nodes of "
            "the tree to the address where their parent listens for nodes"
        )
    _, version, kind, number = _HEAD.unpack_from(data)
    if version != VERSION:
        raise MessageError(
            f"the message has version {version}, and this paneflow speaks version {VERSION}: "
            f"install the same version of paneflow at both ends"
        )
    return Head(kind, number)


def body_of(message: bytes) -> bytes:
    """What follows the head, in a message of one frame."""
    return message[_HEAD.size :]


def write_hello(hello: Hello) -> bytes:
    """A greeting, without its head."""
    return json.dumps(hello._asdict()).encode()


def read_hello(data: bytes) -> Hello:
    """A greeting, checked.

    >>> read_hello(write_hello(Hello("plug-7", "3f", None)))
    Hello(name='plug-7', token='3f', behind=None)
    """
    try:
        about = json.loads(data)
        hello = Hello(about["name"], about["token"], about["behind"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MessageError("a sensor's greeting cannot be read: use paneflow's Sensor") from None
    known = type(hello.behind) is int and hello.behind >= 0
    if not isinstance(hello.token, str) or not (known or hello.behind is None):
        raise MessageError("a sensor's greeting cannot be read: use paneflow's Sensor")
    check_name(hello.name)
    return hello


def check_name(name: object) -> None:
    """Refuse what cannot be the name of a sensor."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH or not name.isprintable():
        raise InputError(
            f"{str(name)[:NAME_LENGTH]!r} cannot be the name of a sensor: use between one and "
            f"{NAME_LENGTH} printable characters"
        )


def write_welcome(welcome: Welcome) -> bytes:
    """A child's answer to a greeting, without its head."""
    schema = base64.b64encode(welcome.schema.serialize()).decode()
    return json.dumps(welcome._asdict() | {"schema": schema}).encode()


def read_welcome(data: bytes) -> Welcome:
    """A child's answer to a greeting."""
    try:
        about: dict[str, Any] = json.loads(data)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(about["schema"])))
        return Welcome(about["taken"], about["time"], about["message_bytes"], schema)
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException):
        raise MessageError("a child's answer cannot be read: is it a child of paneflow?") from None
