"""A merging node: reports of the nodes below come in, and one report goes up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, assert_never

from paneflow.engines.edge.nodes.below import Below
from paneflow.engines.edge.nodes.node import Parts, Snapshot, below
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import (
    Ask,
    Asked,
    Closed,
    Cut,
    Ended,
    Flush,
    Joined,
    Left,
    Lost,
    Record,
    Report,
    Reported,
    Said,
    Silent,
)
from paneflow.errors import InputError


class Merge:
    """Merges what the nodes below report, as soon as all of them have come far enough.

    Args:
        name: The node's name.
        question: What is asked.
        children: The nodes below that are waited for from the start; others may join.
        below: How far the nodes below have come, if another query of the node knows that already.
    """

    highest: ClassVar[bool] = False
    """Whether rows are made here."""

    def __init__(
        self,
        name: str,
        question: Question,
        children: Iterable[str] = (),
        below: Below | None = None,
    ) -> None:
        self.name = name
        self._question = question
        self._below = self.below = below or Below(children)
        self._parts = Parts(question, highest=self.highest)
        self._asked: list[dict[str, Any]] = []
        """What is to be passed on to nodes below."""
        self.counts = {"reports": 0}

    @property
    def watermark(self) -> int:
        """All nodes that are waited for have come so far."""
        return self._below.watermark

    @property
    def missing(self) -> dict[str, int]:
        """Nodes that were given up or are behind, and how far they had come."""
        return self._below.missing

    @property
    def due(self) -> bool:
        """Whether there is something to say."""
        return bool(self._asked) or self._parts.due(self.watermark)

    def take(self, record: Record) -> Said:
        """Take a record; only a flush is answered."""
        match record:
            case Reported():
                self._take(record)
            case Joined():
                self._below.join(record.child)
                self._parts.give_up(record.child, lost=False)
            case Left():
                self._below.leave(record.child)
                self._parts.give_up(record.child, lost=True)
            case Lost():
                self._below.lose(record.child)
                self._parts.give_up(record.child, lost=True)
            case Asked():
                self._asked.append(dict(record.ask.about))
            case Flush():
                return self._say()
            case Cut() | Silent() | Ended() | Closed():
                raise InputError(
                    f"node {self.name!r} was sent events, but only child nodes take events: send "
                    f"them to a child node"
                )
            case _ as never:
                assert_never(never)
        return Said()

    def _take(self, record: Reported) -> None:
        self.counts["reports"] += 1
        self._below.join(record.child)
        self._parts.give_up(record.child, lost=False)
        self._parts.take(record.child, record.report.tables)
        self._below.report(record.child, record.report.watermark, record.report.missing)

    def _say(self) -> Said:
        tables = self._parts.flush(self.watermark, self._below.waited)
        missing = self.missing
        if self._below.deserted:
            missing[self.name] = self.watermark
        return Said(report=Report(self.watermark, tables, missing), asks=self._asks())

    def _asks(self) -> tuple[Ask, ...]:
        """What nodes below are asked."""
        asked, self._asked = self._asked, []
        routes = self._parts.routes
        return tuple(ask for about in asked for ask in (routes.split(about) if routes else ()))

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about = {
            "below": self._below.state(),
            "counts": self.counts,
            "flushed": self._parts.flushed,
            "asked": self._asked,
        }
        return Snapshot(about, {f"parts/{k}": held for k, held in self._parts.state().items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Take up the state of a snapshot."""
        self._below.restore(snapshot.about["below"])
        self.counts = dict(snapshot.about["counts"])
        self._asked = list(snapshot.about["asked"])
        self._parts.restore(below("parts/", snapshot.tables), snapshot.about["flushed"])
