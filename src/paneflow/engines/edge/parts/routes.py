"""Which way child nodes are reached from a node above, and which cannot be reached any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.layouts import CHILD, GONE, GONE_SCHEMA
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.records import Ask

NODE_BELOW = "node:below"
ROUTES = pa.schema([(CHILD, pa.string()), (NODE_BELOW, pa.string()), (GONE, pa.bool_())])


class Routes:
    """Learns from what passes through which node below leads to each child node.

    Args:
        names: The tables to learn from: those that name the child nodes they come from.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._through: dict[str, str] = {}
        self._gone: set[str] = set()
        """Child nodes that cannot be reached, as nodes below say."""
        self._lost: set[str] = set()
        """Nodes below that are given up."""
        self._told: set[str] = set()
        """Child nodes of which the node above knows that they cannot be reached."""

    @property
    def gone(self) -> set[str]:
        """Child nodes that cannot be reached."""
        cut_off = {child for child, through in self._through.items() if through in self._lost}
        return self._gone | cut_off

    def leaves(self, below: str) -> set[str]:
        """The child nodes that a node below leads to."""
        return {child for child, through in self._through.items() if through == below}

    def split(self, about: Mapping[str, Any]) -> tuple[Ask, ...]:
        """What is asked of child nodes, as messages to the nodes below."""
        asked: dict[str, dict[str, Any]] = {through: {} for through in self._through.values()}
        for child, wanted in about["of"].items():
            asked[self._through[child]][child] = wanted
        to_all = {name: value for name, value in about.items() if name != "of"}
        return tuple(Ask(to, {**to_all, "of": asked[to]}) for to in sorted(asked))

    def take(self, child: str, tables: Tables) -> None:
        for name in self._names:
            if name in tables:
                for leaf in tables[name].column(CHILD).unique().to_pylist():
                    self._through[leaf] = child
        for row in tables[GONE].to_pylist() if GONE in tables else ():
            self._through[row[CHILD]] = child
            (self._gone.add if row[GONE] else self._gone.discard)(row[CHILD])

    def due(self, before: int, watermark: int) -> bool:
        return self.gone != self._told

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        gone = self.gone
        changed = sorted(gone ^ self._told)
        self._told = gone
        if not changed:
            return {}
        is_gone = [child in gone for child in changed]
        return {GONE: pa.table([pa.array(changed), pa.array(is_gone)], schema=GONE_SCHEMA)}

    def give_up(self, child: str, lost: bool) -> None:
        (self._lost.add if lost else self._lost.discard)(child)

    def state(self) -> dict[str, pa.Table]:
        rows = sorted(self._through.items())
        gone = [child in self._gone for child, _ in rows]
        children, through = (pa.array([row[k] for row in rows], pa.string()) for k in (0, 1))
        return {
            "routes": pa.table([children, through, pa.array(gone, pa.bool_())], schema=ROUTES),
            "lost": pa.table({"name": pa.array(sorted(self._lost), pa.string())}),
            "told": pa.table({"name": pa.array(sorted(self._told), pa.string())}),
        }

    def restore(self, state: Tables) -> None:
        rows = state["routes"].to_pylist()
        self._through = {row[CHILD]: row[NODE_BELOW] for row in rows}
        self._gone = {row[CHILD] for row in rows if row[GONE]}
        self._lost = set(state["lost"]["name"].to_pylist())
        self._told = set(state["told"]["name"].to_pylist())
