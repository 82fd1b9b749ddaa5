"""What stands in the body of each kind of message, and in the fields of its header."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire.errors import WireError
from paneflow.engines.edge.wire.headers import Kind
from paneflow.engines.edge.wire.messages import (
    Ack,
    Ask,
    Goodbye,
    Heartbeat,
    Hello,
    Introduce,
    Message,
    Numbered,
    Refusal,
    Resend,
    Welcome,
)
from paneflow.engines.edge.wire.texts import read_field, read_names, read_times


class Content(NamedTuple):
    """A message, taken apart."""

    kind: Kind
    number: int = 0
    watermark: int = 0
    about: Mapping[str, Any] = {}
    tables: Mapping[str, pa.Table] = {}


def content_of(message: Message) -> Content:
    """A message, taken apart."""
    match message:
        case Numbered(number, Report(watermark, tables, missing)):
            missed = {"missing": dict(missing)} if missing else {}
            return Content(Kind.NUMBERED, number, watermark, missed, tables)
        case Hello():
            hello = {
                "name": message.name,
                "role": message.role,
                "digest": message.digest,
                "session": message.session,
                "oldest": message.oldest,
                "newest": message.newest,
                "leaves": list(message.leaves),
                "preset": base64.b64encode(message.preset).decode(),
                "largest": message.largest,
            }
            return Content(Kind.HELLO, about=hello)
        case Welcome(session, wanted, digest):
            return Content(Kind.WELCOME, wanted, about={"session": session, "digest": digest})
        case Refusal(session, reason):
            return Content(Kind.REFUSAL, about={"session": session, "reason": reason})
        case Ack(upto):
            return Content(Kind.ACK, upto)
        case Resend(since):
            return Content(Kind.RESEND, since)
        case Heartbeat(number, metrics):
            return Content(Kind.HEARTBEAT, number, about=metrics)
        case Ask(number, about):
            return Content(Kind.ASK, number, about=about)
        case Introduce():
            return Content(Kind.INTRODUCE)
        case Goodbye():
            return Content(Kind.GOODBYE)


def message_of(content: Content) -> Message:
    """The message that was taken apart."""
    if content.tables and content.kind != Kind.NUMBERED:
        raise WireError(f"a message of kind {content.kind.name} holds tables")
    return _MADE[content.kind](content)


def _numbered(content: Content) -> Numbered:
    missing = read_times(content.about, "missing") if content.about else {}
    return Numbered(content.number, Report(content.watermark, content.tables, missing))


def _hello(content: Content) -> Hello:
    about = content.about
    try:
        preset = base64.b64decode(read_field(about, "preset", str), validate=True)
    except (binascii.Error, ValueError):
        raise WireError("the preset in a message is not base64") from None
    return Hello(
        name=read_field(about, "name", str),
        role=read_field(about, "role", str),
        digest=read_field(about, "digest", str),
        session=read_field(about, "session", int),
        oldest=read_field(about, "oldest", int),
        newest=read_field(about, "newest", int),
        leaves=read_names(about, "leaves"),
        preset=preset,
        largest=read_field(about, "largest", int),
    )


def _welcome(content: Content) -> Welcome:
    session = read_field(content.about, "session", int)
    return Welcome(session, content.number, read_field(content.about, "digest", str))


def _refusal(content: Content) -> Refusal:
    session = read_field(content.about, "session", int)
    return Refusal(session, read_field(content.about, "reason", str))


_MADE: dict[Kind, Callable[[Content], Message]] = {
    Kind.NUMBERED: _numbered,
    Kind.HELLO: _hello,
    Kind.WELCOME: _welcome,
    Kind.REFUSAL: _refusal,
    Kind.INTRODUCE: lambda content: Introduce(),
    Kind.ACK: lambda content: Ack(content.number),
    Kind.RESEND: lambda content: Resend(content.number),
    Kind.HEARTBEAT: lambda content: Heartbeat(content.number, content.about),
    Kind.GOODBYE: lambda content: Goodbye(),
    Kind.ASK: lambda content: Ask(content.number, content.about),
}
