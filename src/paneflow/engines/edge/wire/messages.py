"""What two neighbours in the tree say to each other.

Up go reports, each with a number; down go acknowledgements. The others open and close a connection
and keep it going::

    child                          parent
      │ Hello ────────────────────────▶│   who it is, and which reports it still has
      │◀────────────────────── Welcome │   which report is wanted next      (or: Refusal)
      │ Numbered 7 ───────────────────▶│
      │ Numbered 8 ───────────────────▶│   both are written down ...
      │◀─────────────────── Ack upto 8 │   ... so the child can forget them
      │ Numbered 10 ──────────────────▶│   9 is missing
      │◀──────────────── Resend from 9 │
      │ Heartbeat ◀───────────────────▶│   all is well, and how it goes
      │◀──────────────────────── Ask 1 │   more is wanted than was reported
      │ Ack upto 1 ───────────────────▶│   that is written down, too
      │ Goodbye ──────────────────────▶│   nothing more will come
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paneflow.engines.edge.records import Report


@dataclass(frozen=True)
class Numbered:
    """A report, under a number that no other report of this node has, also after a restart."""

    number: int
    report: Report


@dataclass(frozen=True)
class Hello:
    """A node asks to be let in by its parent.

    `oldest` to `newest` are the numbers of the reports that it still has (`newest` is one less than
    `oldest` if there are none). `session` differs from one attempt to the next, and comes back with
    the answer, so that an answer to an older attempt is not mistaken for one to this. `preset` is
    what its reports are compressed against. `leaves` are the children below it, itself included.
    `largest` is the size of the largest of its reports, which its parent may have a limit for.
    """

    name: str
    role: str
    digest: str
    session: int
    oldest: int
    newest: int
    leaves: tuple[str, ...] = ()
    preset: bytes = b""
    largest: int = 0


@dataclass(frozen=True)
class Welcome:
    """The parent lets a node in. `wanted` is the number of the report that it misses next."""

    session: int
    wanted: int
    digest: str


@dataclass(frozen=True)
class Refusal:
    """The parent does not let a node in, or does not keep it."""

    session: int
    reason: str


@dataclass(frozen=True)
class Introduce:
    """The parent does not know who is speaking, as it was started anew: say hello again."""


@dataclass(frozen=True)
class Ack:
    """All reports up to this number are written down; from a child: all that it was asked."""

    upto: int


@dataclass(frozen=True)
class Resend:
    """A report, or an ask, is missing: send it and all that came after it once more."""

    since: int


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life, with what there is to know of how a node fares.

    `number` is that of the last report that was sent, or acknowledged by a parent: so the last
    message is missed too if it was lost.
    """

    number: int
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Goodbye:
    """A node leaves for good; its reports have been acknowledged."""


@dataclass(frozen=True)
class Ask:
    """The parent wants more than was reported. The answer comes in reports, as a part of theirs.

    `number` counts what this node is asked, and is acknowledged as the numbers of reports are.
    """

    number: int
    about: Mapping[str, Any]


Message = (
    Numbered | Hello | Welcome | Refusal | Introduce | Ack | Resend | Heartbeat | Goodbye | Ask
)
