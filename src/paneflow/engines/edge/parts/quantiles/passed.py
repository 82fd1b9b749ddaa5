"""Summaries and answers that a merging node hands on as they are: only the root reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.edges import Edges
from paneflow.engines.edge.parts.waiting import FROM, Waiting, by_node
from paneflow.windows import Sliding


class PassedOn:
    """Tables that go on with the next report.

    Args:
        schemas: What is handed on, by name.
        at_once: Which of it the root waits for.
        windows: Windows of time; for the rest, an edge of theirs is reason enough for a report.
    """

    def __init__(
        self, schemas: Mapping[str, pa.Schema], at_once: Iterable[str], windows: list[Sliding]
    ) -> None:
        self._waiting = {name: Waiting(schema) for name, schema in schemas.items()}
        self._at_once = set(at_once)
        self._edges = Edges(windows) if windows else None

    def take(self, child: str, tables: Tables) -> None:
        for name, waiting in self._waiting.items():
            waiting.add(child, tables.get(name))

    def due(self, before: int, watermark: int) -> bool:
        urgent = any(len(self._waiting[name]) for name in self._at_once)
        if self._edges is None:
            return urgent
        return urgent or self._edges.by(watermark) > self._edges.by(before)

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        tables = {}
        for name, waiting in self._waiting.items():
            if len(waiting):
                tables[name] = by_node(waiting.all()).drop_columns(FROM)
                waiting.clear()
        return tables

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has reported stays."""

    def state(self) -> dict[str, pa.Table]:
        return {name: waiting.all() for name, waiting in self._waiting.items()}

    def restore(self, state: Tables) -> None:
        for name, waiting in self._waiting.items():
            waiting.replace(state[name])
