"""What a node of the tree is told, and what it says in turn.

Nodes are state machines: the same records in the same order make the same state and the same
answers. That is what lets a node write down records as they arrive, die, and carry on from what it
wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

BEFORE_ALL = -(2**62)
AFTER_ALL = 2**62


@dataclass(frozen=True)
class Report:
    """What a node tells its parent in one message.

    `watermark` is a promise: whatever windows that end by it need has been reported, apart from
    stragglers. `AFTER_ALL` says that nothing will follow. `tables` holds what is reported, by the
    name of the part; both ends know the schema of each part (`Question.schemas`).
    """

    watermark: int
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    """Nodes below that were given up, with the last watermark of each: what ends later may be
    incomplete. A node that has nobody left below it counts itself among them."""


@dataclass(frozen=True)
class Pushed:
    """Events have arrived at a child node, from one of its sources."""

    source: str
    events: pa.Table


@dataclass(frozen=True)
class Cut:
    """The same, as the child writes it down: what is left of the events once they are cut.

    `position` is the number of the push, by which its source knows what need not be sent again.
    """

    source: str
    position: int
    latest: int
    tables: Mapping[str, pa.Table]
    events: int
    no_time: int
    """Events that were left out because they have no time."""


@dataclass(frozen=True)
class Silent:
    """A source has been silent for longer than a child waits for it."""

    source: str


@dataclass(frozen=True)
class Ended:
    """A source will send nothing more."""

    source: str


@dataclass(frozen=True)
class Closed:
    """A child node will take no more events: all its sources have ended for good."""


@dataclass(frozen=True)
class Reported:
    """A node below has reported."""

    child: str
    number: int
    report: Report


@dataclass(frozen=True)
class Joined:
    """A node below is there, for the first time or again."""

    child: str


@dataclass(frozen=True)
class Left:
    """A node below has said goodbye: nothing more will come from it."""

    child: str


@dataclass(frozen=True)
class Lost:
    """A node below has been silent for longer than the node's patience."""

    child: str


@dataclass(frozen=True)
class Flush:
    """The node is to say what it can: only then does it speak, so that much goes in one message."""


@dataclass(frozen=True)
class Ask:
    """What a node wants of a node below, and of the child nodes that are reached through it.

    `about` holds values of JSON: under "of" what is asked of each child node, by its name, and
    beside it what all of them are told. Asks are numbered, written down, acknowledged and sent
    again like reports, in the other direction. The answers come in reports.

    An ask that is lost for good does no harm: it is made again to a node that joins again
    (`Joined`), and a child node that is asked twice answers twice, of which one answer counts.
    """

    to: str
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """The node above wants something."""

    number: int
    ask: Ask


Record = Cut | Silent | Ended | Closed | Reported | Joined | Left | Lost | Asked | Flush


@dataclass(frozen=True)
class Said:
    """What a node says when it is flushed: a report to its parent, or, at the root, rows.

    `slices` are those that the rows were made of, as `query.slice` gives them, for whoever makes
    rows of the slices of many trees. `asks` go to nodes below, each to one.
    """

    report: Report | None = None
    rows: pa.Table | None = None
    slices: pa.Table | None = None
    asks: tuple[Ask, ...] = ()
    added: Mapping[str, pa.Table] = field(default_factory=dict)
    """At the root: the rows of queries that were added to the tree, by their names."""
