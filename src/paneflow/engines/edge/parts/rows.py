"""Rows of local windows: final on the child node that made them, only put in order on their way."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.question import ROWS, Question


class LocalRows:
    """Rows that wait until all nodes below have passed their ends."""

    def __init__(self, question: Question) -> None:
        self._waiting = Waiting(question.schemas[ROWS])

    def take(self, child: str, tables: Tables) -> None:
        self._waiting.add(child, tables.get(ROWS))

    def due(self, before: int, watermark: int) -> bool:
        return watermark > before

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        later = ticks(self._waiting.all(), "end") > watermark
        return {ROWS: self._waiting.keep(later).drop_columns(FROM)}

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has reported stays; nothing of it is waited for."""

    def state(self) -> dict[str, pa.Table]:
        return {"waiting": self._waiting.all()}

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])
