"""What a node is connected to, from its configuration: its parent, nodes below, and inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from paneflow.engines.edge.config import ConfigError, NodeConfig
from paneflow.engines.edge.inputs.contract import Input
from paneflow.engines.edge.network.sockets import Limits, Listener, Uplink
from paneflow.engines.edge.programme.child import ChildProgramme
from paneflow.engines.edge.running.children import ChildLinks
from paneflow.engines.edge.running.cuts import Cutter
from paneflow.engines.edge.running.intake import Intake
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.running.parent import ParentLink
from paneflow.engines.edge.running.peers import Terms
from paneflow.engines.edge.running.security import Security
from paneflow.engines.edge.running.watched import Watched
from paneflow.engines.edge.wire import Hello, Wire


class _Closes(Protocol):
    def close(self) -> None: ...


Closes = TypeVar("Closes", bound=_Closes)


@contextmanager
def closed_after(made: Closes | None) -> Iterator[Closes | None]:
    """Something that is closed after the block, if there is anything."""
    try:
        yield made
    finally:
        if made is not None:
            made.close()


@dataclass(frozen=True)
class Connections:
    """Makes connections, each of them once."""

    config: NodeConfig
    pace: Pace
    security: Security
    wire: Wire
    ledger: Ledger
    watched: Watched

    def children(self) -> ChildLinks | None:
        """The nodes below; None for a child node."""
        config, security = self.config, self.security
        if config.listen is None:
            return None
        if config.patience < 2 * self.pace.heartbeat:
            raise ConfigError(
                f"a patience of {config.patience:g} seconds is too short for {config.name!r}: "
                f"nodes below give a sign of life every {self.pace.heartbeat:g} seconds, so wait "
                f"at least twice as long"
            )
        listener = Listener(security.context, config.listen, security.keys, self._limits())
        per_second = config.limits.messages_per_second
        terms = Terms(config.question.digest, security.belongs, config.patience, per_second)
        return ChildLinks(listener, self.wire, self.ledger, terms, self.watched, time.monotonic())

    def parent(self, children: ChildLinks | None) -> ParentLink | None:
        """The node above; None for the root."""
        config, security, sender = self.config, self.security, self.ledger.sender
        if config.parent is None:
            return None

        def hello(session: int) -> Hello:
            leaves = (config.name,) if children is None else children.leaves
            return sender.hello(config.name, config.role, config.question.digest, session, leaves)

        address, limits = config.parent.address, self._limits()
        line = Uplink(security.context, address, security.keys, security.parent_key, limits)
        return ParentLink(line, self.wire, self.ledger, hello, self.watched.metrics, self.pace)

    def intake(self, inputs: Sequence[Input]) -> Intake | None:
        """The inputs of a child node; None for others."""
        config, machine = self.config, self.ledger.machine
        if not isinstance(machine, ChildProgramme):
            return None
        cutter = Cutter(machine, config.columns, config.question.query.time)
        return Intake(inputs, cutter, machine.positions, config.idle, time.monotonic())

    def _limits(self) -> Limits:
        # Twice of what is allowed arrives, and is refused with a line in the log; a connection over
        # which still more is to come is cut off.
        return Limits(message_bytes=2 * self.config.limits.message_bytes)
