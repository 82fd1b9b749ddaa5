"""Windows of several nodes that are one by their number or their bound."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.interpreting import ORDER
from paneflow.engines.edge.matching import GROUP, LABEL, Matching
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.records import AFTER_ALL
from paneflow.slicing.keys import encode_keys


class Matched:
    """Slices of windows that wait for those of the other nodes.

    By number, a window is complete when every node that is waited for has sent its own of that
    number; by bound, when the watermark has passed it.
    """

    def __init__(self, matching: Matching, lowest: bool) -> None:
        self._name = matching.way
        self._layout = matching.layout
        self._lowest = lowest
        self._keys = tuple(f"key:{name}" for name in matching.query.key)
        self._waiting = Waiting(self._layout.schema)

    def take(self, child: str, tables: Tables) -> None:
        self._waiting.add(child, tables.get(self._name))

    def due(self, before: int, watermark: int) -> bool:
        # A child node finds its windows only when it reports.
        return watermark > before and (self._lowest or len(self._waiting) > 0)

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        there = self._waiting.all()
        if watermark == AFTER_ALL or self._lowest:
            whole = np.ones(there.num_rows, np.bool_)
        elif self._name == ORDER:
            whole = self._sent_by_all(there, set(waited))
        else:
            whole = there.column(f"key:{GROUP}").to_numpy() < watermark
        ready = self._waiting.keep(~whole).drop_columns(FROM)
        return {self._name: self._layout.merged(ready, self._lowest)}

    def _sent_by_all(self, there: pa.Table, waited: set[str]) -> Array:
        """Which slices are of windows that every node waited for has sent."""
        windows = (*self._keys, f"key:{LABEL}", f"key:{GROUP}")
        pairs, _ = encode_keys(there, (*windows, FROM))
        codes, distinct = encode_keys(there, windows)
        by_waited = np.isin(there.column(FROM).to_numpy(zero_copy_only=False), sorted(waited))
        _, first = np.unique(pairs, return_index=True)
        counted = first[by_waited[first]]
        senders = np.bincount(codes[counted], minlength=distinct.num_rows)
        whole: Array = senders[codes] >= len(waited)
        return whole

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has sent stays; nothing of it is waited for."""

    def state(self) -> dict[str, pa.Table]:
        return {"waiting": self._waiting.all()}

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])
