"""Events as they are, for windows that depend on the order of all events."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from paneflow.engines.edge.interpreting import EVENTS
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.question import Question
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.times import read_times


class RawEvents:
    """Events that wait until every node below has shown all that come before them."""

    def __init__(self, question: Question) -> None:
        self._time = question.query.time
        self._waiting = Waiting(question.schemas[EVENTS])

    def take(self, child: str, tables: Tables) -> None:
        self._waiting.add(child, tables.get(EVENTS))

    def due(self, before: int, watermark: int) -> bool:
        return watermark > before

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        later = read_times(self._waiting.all(), self._time)[0] >= watermark
        ready = self._waiting.keep(later).drop_columns(FROM)
        return {EVENTS: in_order(ready, self._time)}

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has reported stays; nothing of it is waited for."""

    def state(self) -> dict[str, pa.Table]:
        return {"waiting": self._waiting.all()}

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])


def in_order(events: pa.Table, time: str) -> pa.Table:
    """Events in total order: by time, then by child node, then as they came."""
    codes, _ = encode_keys(events, (CHILD,))
    order = np.lexsort((codes, read_times(events, time)[0]))
    return events.take(pa.array(order))
