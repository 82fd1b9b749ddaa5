"""The loop that runs a node: one thread, one turn after the other.

A turn takes what has arrived, writes it to the log, and only when the log is committed tells
anybody else: neighbours are acknowledged, reports go up, rows are written. So whenever a node dies,
what it has said follows from what is in its log.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import zmq

from paneflow.engines.edge.programme.child import ChildProgramme
from paneflow.engines.edge.records import AFTER_ALL, Closed, Flush, Lost, Silent
from paneflow.engines.edge.running.children import ChildLinks
from paneflow.engines.edge.running.intake import Intake
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.outlets import Outlets
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.running.parent import ParentLink
from paneflow.engines.edge.running.requests import Requests
from paneflow.engines.edge.running.waking import Waking
from paneflow.engines.edge.running.watched import Watched

log = logging.getLogger(__name__)

BUSY = 0.5
"""A turn that takes so many seconds is noticed by those who have to be heard in time."""


@dataclass(frozen=True)
class Surroundings:
    """What a node is connected to.

    Attributes:
        parent: The node above; None for the root.
        children: The nodes below; None for a child node.
        intake: The inputs of a child node.
        outputs: Where the root writes rows.
    """

    parent: ParentLink | None
    children: ChildLinks | None
    intake: Intake | None
    outputs: Outlets


class Loop:
    """Runs a node until it is stopped, or has left the tree.

    Args:
        ledger: What the node knows.
        around: What it is connected to.
        watched: What it shows.
        waking: How others wake it.
        pace: How long it waits for what.
        most_waiting: Bytes that may wait for the parent before nothing more is read.
        requests: At the root: what other threads want of it.
    """

    def __init__(
        self,
        ledger: Ledger,
        around: Surroundings,
        watched: Watched,
        waking: Waking,
        pace: Pace,
        most_waiting: int,
        requests: Requests | None,
    ) -> None:
        self._ledger = ledger
        self._around = around
        self._watched = watched
        self._waking = waking
        self._pace = pace
        self._most_waiting = most_waiting
        self._requests = requests
        self._poller = zmq.Poller()
        self._polled: list[Any] = []
        self._due_since: float | None = None
        self._flush_at = 0.0
        self._full = False
        self._listened = time.monotonic()
        self._waited = 0.0
        """How long others could be heard since they were last listened to."""
        # A child node that was closed before it was restarted takes no more events.
        self._leaving = (
            isinstance(ledger.machine, ChildProgramme) and ledger.machine.watermark == AFTER_ALL
        )
        self._stopping = False
        self.ended = False
        """Whether the node has left the tree: all that it had to say has been acknowledged."""

    def run(self) -> None:
        """Turn until the node is stopped or has left."""
        self._tell(time.monotonic())
        while not (self._stopping or self.ended):
            self._wait()
            self.turn()

    def stop(self) -> None:
        """End after this turn. The node can be started again, and nothing will be missing."""
        self._stopping = True
        self._waking.wake()

    def leave(self) -> None:
        """Take no more events, report what there is, and end when nobody below is left."""
        self._leaving = True
        self._waking.wake()

    def turn(self) -> None:
        """Take what has arrived, write it down, and answer."""
        now = time.monotonic()
        if self._around.parent is not None:
            self._around.parent.receive(now)
        if self._requests is not None:
            self._requests.take(self._ledger)
        self._read(now)
        self._flush(now)
        self._tell(now)
        if self._ledger.is_long(self._pace.snapshot_every):
            self._ledger.snapshot()

    def _read(self, now: float) -> None:
        """Take what has arrived from below, unless too much waits for the parent."""
        around = self._around
        was_full, self._full = self._full, self._ledger.sender.waiting > self._most_waiting
        if self._full:
            if not was_full:
                log.warning("the parent does not keep up: nothing is read until it does")
            return
        self._excuse(now)
        if around.children is not None:
            around.children.receive(self._pace.bytes_at_once, now)
            for child in around.children.silent(now):
                log.warning("a node is given up", extra={"fields": {"child": child}})
                self._ledger.write(Lost(child))
        if around.intake is not None and not self._leaving:
            for record in around.intake.records(self._pace.parts_at_once, now):
                self._ledger.write(record)
            for source in around.intake.silent(now):
                log.info("a source is silent", extra={"fields": {"source": source}})
                self._ledger.write(Silent(source))
            if around.intake.finished:
                self._leaving = True

    def _excuse(self, now: float) -> None:
        """Do not hold it against others that this node was full, or busy, and heard nobody."""
        deaf, self._listened = now - self._listened - self._waited, now
        self._waited = 0.0
        if deaf > BUSY:
            if self._around.children is not None:
                self._around.children.excuse(deaf)
            if self._around.intake is not None:
                self._around.intake.excuse(deaf)

    def _flush(self, now: float) -> None:
        """Let the machine speak, if it has something to say and others may join no more."""
        ledger, machine = self._ledger, self._ledger.machine
        if self._leaving and isinstance(machine, ChildProgramme) and machine.watermark < AFTER_ALL:
            ledger.write(Closed())
        hurries = self._leaving and not self._anybody_below
        if machine.due and self._due_since is None:
            self._due_since = now
        if self._due_since is not None:
            speaks = hurries or now - self._due_since >= self._pace.linger
        else:
            speaks = self._reports and ledger.unsaid and (hurries or now >= self._flush_at)
        if speaks:
            ledger.write(Flush())
            self._flush_at = now + self._pace.progress

    def _tell(self, now: float) -> None:
        """Commit, and then tell others what follows."""
        around = self._around
        steps = self._ledger.commit()
        if around.intake is not None:
            around.intake.settle()
        if around.children is not None:
            around.children.answer(now)
        self._watched.update(self._ledger, around.intake.refused if around.intake else 0)
        for step in steps:
            around.outputs.write(step)
        if self._requests is not None:
            self._requests.settle()
        if steps and self._due_since is not None:
            self._watched.metrics.closed(time.monotonic() - self._due_since)
        if not self._ledger.unsaid:
            self._due_since = None
        if around.parent is not None:
            around.parent.send(now, self._watched.about)
        if self._leaving and self._has_said_all():
            if around.parent is not None:
                around.parent.say_goodbye()
            self.ended = True

    def _has_said_all(self) -> bool:
        """Whether nobody needs this node any more."""
        ledger = self._ledger
        if ledger.machine.due or self._anybody_below:
            return False
        if isinstance(ledger.machine, ChildProgramme) and not ledger.machine.may_leave:
            return False
        if not self._reports:
            return True
        return ledger.sender.welcome and not ledger.sender.waiting and not ledger.unsaid

    @property
    def _anybody_below(self) -> bool:
        return self._around.children is not None and self._around.children.expected

    def _wait(self) -> None:
        """Sleep until something arrives or is due."""
        now = time.monotonic()
        around = self._around
        polled: list[Any] = [self._waking.fileno()]
        pauses: list[float | None] = []
        if around.parent is not None:
            polled += [around.parent.line.socket, around.parent.line.events]
            pauses.append(around.parent.pause(now))
        if around.children is not None and not self._full:
            polled += [around.children.listener.socket, around.children.listener.events]
            pauses.append(around.children.pause(now))
        if around.intake is not None and not (self._full or self._leaving):
            polled += around.intake.waits_on()
            pauses.append(around.intake.pause(now))
        if self._due_since is not None:
            pauses.append(self._due_since + self._pace.linger - now)
        elif self._reports and self._ledger.unsaid:
            pauses.append(self._flush_at - now)
        self._poll(polled, min((p for p in pauses if p is not None), default=None))

    def _poll(self, polled: list[Any], seconds: float | None) -> None:
        if polled != self._polled:
            self._poller = zmq.Poller()
            for end in polled:
                self._poller.register(end, zmq.POLLIN)
            self._polled = polled
        # Rounded up, so that nothing is looked at just before it is due.
        begun = time.monotonic()
        self._poller.poll(None if seconds is None else max(int(seconds * 1000) + 1, 0))
        self._waited += 0.0 if self._full else time.monotonic() - begun
        self._waking.clear()

    @property
    def _reports(self) -> bool:
        return self._around.parent is not None
