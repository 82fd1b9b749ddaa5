"""What a running node shows of itself and of the nodes below it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.config import NodeConfig
from paneflow.engines.edge.programme.root import RootProgramme, Standing
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.standings import Standings
from paneflow.engines.edge.watching.metrics import Metrics
from paneflow.engines.edge.watching.picture import NodeLine, TreePicture

log = logging.getLogger(__name__)

NODES = "nodes"
"""Under this name, heartbeats carry what is known of their sender and the nodes below it."""
COUNTED = ("events", "late", "rows")


class Watched:
    """The metrics of a node, and the picture of its tree. Other threads may look at both."""

    def __init__(self, config: NodeConfig, patience: float) -> None:
        time_column = config.columns.field(config.question.query.time)
        self.metrics = Metrics(
            config.name, config.role, timestamps=pa.types.is_timestamp(time_column.type)
        )
        self._name = config.name
        self._picture = TreePicture(patience)
        self._lock = Lock()
        self._counted = dict.fromkeys(COUNTED, 0)
        self._reports = 0
        self._refused = 0
        self.queries: dict[str, Standing] = {}
        """How the queries stand that were added to the tree; replaced, and never changed."""

    def update(self, ledger: Ledger, refused: int) -> None:
        """Note what has changed since the last turn. `refused`: by inputs, since the start."""
        machine, sender, metrics = ledger.machine, ledger.sender, self.metrics
        counts = {name: machine.counts.get(name, 0) for name in COUNTED}
        grown = {name: counts[name] - self._counted[name] for name in COUNTED}
        metrics.count(
            **grown, reports=sender.newest - self._reports, refused=refused - self._refused
        )
        if isinstance(machine, RootProgramme):
            self._note(machine.queries)
        self._counted, self._reports, self._refused = counts, sender.newest, refused
        metrics.moved_to(machine.watermark)
        metrics.queued(sender.newest - sender.oldest + 1, sender.waiting)
        metrics.alive(self._alive(ledger.standings))

    def _note(self, queries: dict[str, Standing]) -> None:
        """Note how queries stand, and log when they change."""
        for name, standing in queries.items():
            before = self.queries.get(name)
            if before is None:
                how = {"shares": standing.shares} if standing.shares else {"why": standing.why}
                log.info("a query was added", extra={"fields": {"query": name, **how}})
            if standing.begins is not None and (before is None or before.begins is None):
                about = {"query": name, "begins": standing.begins}
                log.info("a query begins", extra={"fields": about})
        for name in self.queries.keys() - queries.keys():
            log.info("a query was removed", extra={"fields": {"query": name}})
        self.queries = queries

    def told(self, about: Mapping[str, Any]) -> None:
        """Note what the heartbeat of a node below carries."""
        nodes = about.get(NODES)
        if isinstance(nodes, list):
            with self._lock:
                self._picture.take_all(nodes, self._name, time.monotonic())

    def forget(self, child: str) -> None:
        """A node below has left."""
        with self._lock:
            self._picture.forget(child)

    def about(self) -> dict[str, Any]:
        """What a heartbeat carries."""
        with self._lock:
            self._take_own()
            return {NODES: self._picture.carried(time.monotonic(), self._name)}

    def lines(self) -> list[NodeLine]:
        """The tree from this node on."""
        with self._lock:
            self._take_own()
            return self._picture.lines(time.monotonic())

    def _take_own(self) -> None:
        self._picture.take(self._name, None, self.metrics.as_dict(), time.monotonic())

    @staticmethod
    def _alive(standings: Standings) -> dict[str, bool]:
        return {name: standings.of(name).here for name in standings.names()}
