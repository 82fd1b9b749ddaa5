"""Cells of a child node's events, which are kept until the root is done with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.counted import (
    CELLS,
    HELD,
    LOGGED,
    NUMBER,
    PARCELS,
    PARENT,
    Counted,
    spacing,
)
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.counts.grains import (
    LEAST_SPLIT,
    SPLIT,
    SUPPOSED_NODES,
    UNKNOWN,
    grain_for,
)
from paneflow.engines.edge.parts.counts.parcels import packed
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.times import read_times

FEW = 3
"""Cells of no more events are sent as events, which are fewer bytes."""
GRAIN = "cell:grain"
"""How long the stretch of time is that a cell was cut by."""


class Cells:
    """Events that wait for the watermark, and those of cells that the root may ask for."""

    def __init__(self, counted: Counted, name: str) -> None:
        self._counted = counted
        self._name = name
        self._time = counted.query.time
        self._waiting = Waiting(counted.events)
        of_cell = [pa.field(column, pa.int64()) for column in (NUMBER, GRAIN)]
        self._kept = pa.schema([*counted.events, *of_cell]).empty_table()
        self._wanted: set[int] = set()
        self._numbered = 0
        self._flushed = BEFORE_ALL
        self._grain = UNKNOWN
        """How long a cell is; 0 if events are fewer bytes."""

    @property
    def asked_for(self) -> bool:
        """Whether the root may still ask for something."""
        return len(self._waiting) > 0 or self._kept.num_rows > 0

    def take(self, child: str, tables: Tables) -> None:
        self._waiting.add(child, tables.get(LOGGED))

    def ask(self, about: Mapping[str, Any]) -> None:
        """Take what the root asks; it is answered with the next report."""
        self._wanted |= set(about["of"].get(self._name, ()))
        if about["grain"] != UNKNOWN:
            self._grain = about["grain"]
        times = read_times(self._kept, self._time)[0]
        needed = (times >= about["done"]) | self._is_wanted()
        self._kept = self._kept.filter(pa.array(needed)).combine_chunks()

    def due(self, before: int, watermark: int) -> bool:
        return bool(self._wanted) or self._edge(watermark) > self._edge(before)

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        sent: dict[str, list[pa.Table]] = {CELLS: [], PARCELS: []}
        self._answer(sent)
        times = read_times(self._waiting.all(), self._time)[0]
        ready = self._waiting.keep(times >= watermark).drop_columns(FROM)
        if ready.num_rows:
            if self._grain == UNKNOWN:
                self._grain = self._guess(ready)
            # The root may take some stragglers and find others late, but no part of a cell.
            late = read_times(ready, self._time)[0] < self._flushed
            self._send(ready.filter(pa.array(late)), 0, 0, sent)
            self._send(ready.filter(pa.array(~late)), max(self._grain, 0), 0, sent)
        self._flushed = max(self._flushed, watermark)
        return {name: pa.concat_tables(tables) for name, tables in sent.items() if tables}

    def give_up(self, child: str, lost: bool) -> None:
        """There is no node below."""

    def state(self) -> dict[str, pa.Table]:
        about = {"numbered": self._numbered, "grain": self._grain, "flushed": self._flushed}
        wanted = pa.table({NUMBER: pa.array(sorted(self._wanted), pa.int64())})
        return {
            "waiting": self._waiting.all(),
            "kept": self._kept,
            "wanted": wanted,
            "about": pa.Table.from_pylist([about]),
        }

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])
        self._kept = state["kept"]
        self._wanted = set(state["wanted"][NUMBER].to_pylist())
        (about,) = state["about"].to_pylist()
        self._numbered, self._grain = about["numbered"], about["grain"]
        self._flushed = about["flushed"]

    def _edge(self, watermark: int) -> int:
        """The last edge of a cell by a watermark."""
        if watermark in (BEFORE_ALL, AFTER_ALL) or self._grain <= 0:
            return watermark
        return watermark // self._grain * self._grain

    def _guess(self, events: pa.Table) -> int:
        """How long cells should be, if other child nodes have as many events."""
        codes, _ = encode_keys(events, self._counted.query.key)
        rows = np.full(events.num_rows, SUPPOSED_NODES)
        times = read_times(events, self._time)[0]
        span = int(times.max() - times.min()) + 1
        often = spacing(self._counted.windows.values())
        return grain_for(codes, rows, span, often, SUPPOSED_NODES, UNKNOWN)

    def _answer(self, sent: dict[str, list[pa.Table]]) -> None:
        """Open the cells that were asked for: large ones as shorter cells, others as events."""
        wanted = self._is_wanted()
        self._wanted = set()
        asked = self._kept.filter(pa.array(wanted)).combine_chunks()
        self._kept = self._kept.filter(pa.array(~wanted))
        events = asked.select(self._counted.events.names)
        # Events of a cell stand together, for cells are kept in the order of their numbers.
        grains = asked.column(GRAIN).to_numpy()
        numbers, first, sizes = np.unique(
            asked.column(NUMBER).to_numpy(), return_index=True, return_counts=True
        )
        split = (sizes >= LEAST_SPLIT) & (grains[first] >= SPLIT)
        for k in np.flatnonzero(split).tolist():
            cell = events.slice(first[k], sizes[k])
            self._send(cell, int(grains[first[k]]) // SPLIT, int(numbers[k]), sent)
        small = events.filter(pa.array(np.repeat(~split, sizes)))
        self._send_events(small, sizes[~split], numbers[~split], sent)

    def _send(
        self, events: pa.Table, grain: int, parent: int, sent: dict[str, list[pa.Table]]
    ) -> None:
        """Send events as cells as far as it is worth it, and keep those of cells."""
        if grain and events.num_rows:
            cut = self._counted.cut(events, grain)
            large = cut.sizes > FEW
            in_cell = np.repeat(large, cut.sizes)
            numbers = self._numbers(int(large.sum()))
            cells = cut.cells.filter(pa.array(large))
            cells = self._named(cells, numbers, np.full(len(numbers), parent))
            sent[CELLS].append(cells.cast(self._counted.schemas[CELLS]))
            kept = events.take(pa.array(cut.rows[in_cell]))
            kept = kept.append_column(NUMBER, pa.array(np.repeat(numbers, cut.sizes[large])))
            kept = kept.append_column(GRAIN, pa.array(np.full(kept.num_rows, grain)))
            self._kept = pa.concat_tables([self._kept, kept])
            few = np.zeros(events.num_rows, np.bool_)
            few[cut.rows[~in_cell]] = True
            events = events.filter(pa.array(few))
        self._send_events(events, np.array([events.num_rows]), np.array([parent]), sent)

    def _send_events(
        self, events: pa.Table, sizes: Array, parents: Array, sent: dict[str, list[pa.Table]]
    ) -> None:
        """Send events as parcels of these sizes."""
        if events.num_rows:
            schema = self._counted.schemas[PARCELS]
            held = packed(events, sizes).cast(schema.field(HELD).type)
            parcels = self._named(pa.table({HELD: held}), self._numbers(len(sizes)), parents)
            sent[PARCELS].append(parcels.select(schema.names))

    def _named(self, rows: pa.Table, numbers: Array, parents: Array) -> pa.Table:
        """Cells or parcels with what tells them apart."""
        rows = rows.append_column(CHILD, pa.repeat(pa.scalar(self._name), rows.num_rows))
        rows = rows.append_column(NUMBER, pa.array(numbers, pa.int64()))
        return rows.append_column(PARENT, pa.array(parents, pa.int64()))

    def _is_wanted(self) -> Array:
        wanted = pa.array(sorted(self._wanted), pa.int64())
        found: Array = pc.is_in(self._kept[NUMBER], wanted).to_numpy()
        return found

    def _numbers(self, n: int) -> Array:
        """The next numbers."""
        first = self._numbered + 1
        self._numbered += n
        return np.arange(first, first + n)
