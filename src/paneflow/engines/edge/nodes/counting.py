"""What the root knows of count windows from cells, and which cells it has to open."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.counted import (
    CELLS,
    NUMBER,
    PARCELS,
    PARENT,
    Counted,
    spacing,
)
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.nodes.asking import Answered
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.counts.finished import rows_of
from paneflow.engines.edge.parts.counts.grains import UNKNOWN, grain_for
from paneflow.engines.edge.parts.counts.positions import bounded, closed, settled_by
from paneflow.engines.edge.parts.counts.units import POSITION, Order, ordered, settle, units_of
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import LAST, ROWS, START

STATE = "unit:state"
EVENT, CLOSED, ASKED = range(3)
"""What a unit is: a single event, a cell, or a cell that has been asked for."""
MANY = 64
"""So many cells are done with before child nodes are told, if there is nothing else to say."""


class Counting:
    """Holds cells and events, and opens the cells in which a window begins or ends."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted
        self._windows = list(counted.windows.values())
        named = [pa.field(CHILD, pa.string()), pa.field(NUMBER, pa.int64())]
        self._state = pa.field(STATE, pa.int64())
        self._fresh = pa.schema([*counted.units, *named, self._state]).empty_table()
        self._settled = counted.units.append(pa.field(POSITION, pa.int64())).empty_table()
        """Units that stand at a known position and that open windows need."""
        fields = [counted.units.field(name) for name in (*counted.keys, ROWS)]
        self._passed = pa.schema(fields).empty_table()
        """How many events of each key have been settled."""
        self._children: set[str] = set()
        self._greeted: set[str] = set()
        """Child nodes that know how long a cell is."""
        self._grain = UNKNOWN
        self._untold = 0
        """Cells that are done with, which child nodes do not know yet."""
        self._heard = False
        self._dropped = BEFORE_ALL
        """The last time of cells that were given up; windows that begin by then are incomplete."""
        self.until = BEFORE_ALL

    def due(self, before: int, watermark: int) -> bool:
        """Whether there is something to say, now that the watermark has moved."""
        waiting = self._fresh.num_rows + self._untold
        return self._heard or (watermark > before and waiting > 0)

    def take(self, tables: Tables) -> int:
        """Take what nodes below have reported. Gives how many events come too late."""
        came = {name: tables[name] for name in (CELLS, PARCELS) if name in tables}
        if came:
            came = self._awaited(came)
        late = 0
        if CELLS in came:
            late += self._add(came[CELLS], CLOSED)
        if PARCELS in came:
            late += self._add(units_of(self._counted, came[PARCELS]), EVENT)
        return late

    def repeat(self, children: Collection[str]) -> None:
        """Ask some child nodes again for what they have not answered."""
        again = (self._states() == ASKED) & self._of(children)
        self._greeted -= set(children)
        if again.any():
            self._mark(np.where(again, CLOSED, self._states()))
            self._heard = True

    def advance(self, watermark: int, gone: Collection[str]) -> Answered:
        """Answer windows as far as possible, where some child nodes are out of reach."""
        self._heard = False
        order = self._order()
        while len(lost := self._lost(order, watermark, gone)):
            self._untold += len(lost)
            self._dropped = max(self._dropped, int(ticks(order.units, LAST)[lost].max()))
            kept = np.ones(order.units.num_rows, np.bool_)
            kept[lost] = False
            self._fresh = order.units.filter(pa.array(kept)).combine_chunks()
            order = self._order()
        self._fresh = order.units
        missing = self._missing(order, watermark)
        wanted = self._want(missing & (self._states() == CLOSED))
        groups = order.groups
        unsettled = groups.last >= watermark
        unsettled[groups.of_unit[missing]] = True
        self.until = max(self.until, settled_by(groups, unsettled, watermark))
        news = self._choose_grain(order)
        rows = self._close(order)
        told = bool(wanted) or news or self._untold >= MANY
        if told or (self.until == AFTER_ALL and self._untold):
            self._untold = 0
            about: dict[str, Any] = {"done": self.until, "grain": self._grain, "of": wanted}
            self._greeted = set(self._children)
        else:
            about = {}
        doubtful = ticks(rows, "start") <= self._dropped
        return Answered(self.until, rows, doubtful, about or None)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about = {
            "children": sorted(self._children),
            "greeted": sorted(self._greeted),
            "grain": self._grain,
            "untold": self._untold,
            "heard": self._heard,
            "dropped": self._dropped,
            "until": self.until,
        }
        tables = {"fresh": self._fresh, "settled": self._settled, "passed": self._passed}
        return Snapshot(about, tables)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up what `snapshot` gave."""
        about, tables = snapshot
        self._children, self._greeted = set(about["children"]), set(about["greeted"])
        self._grain, self._untold = about["grain"], about["untold"]
        self._heard, self._dropped = about["heard"], about["dropped"]
        self.until = about["until"]
        self._fresh, self._settled = tables["fresh"], tables["settled"]
        self._passed = tables["passed"]

    def _add(self, units: pa.Table, state: int) -> int:
        """Hold units, apart from those that come too late; how many events these have."""
        self._children.update(units.column(CHILD).unique().to_pylist())
        late = ticks(units, START) < self.until
        missed = int(units.column(ROWS).to_numpy()[late].sum())
        if state == CLOSED and late.any():
            self._untold += int(late.sum())
            self._heard = True
        units = units.filter(pa.array(~late))
        states = pa.array(np.full(units.num_rows, state))
        fresh = units.append_column(self._state, states).select(self._fresh.column_names)
        self._fresh = pa.concat_tables([self._fresh, fresh])
        return missed

    def _awaited(self, came: Tables) -> dict[str, pa.Table]:
        """What has come without answers for cells that are not held any more.

        Cells that are answered go: a cell that was asked for may also have been settled as it was,
        since other answers have shown that no window begins or ends in it.
        """
        whose = [table.select([CHILD, PARENT]) for table in came.values()]
        answers = pa.concat_tables(whose).rename_columns([CHILD, NUMBER])
        both = pa.concat_tables([self._fresh.select([CHILD, NUMBER]), answers])
        codes, _ = encode_keys(both.combine_chunks(), (CHILD, NUMBER))
        held, theirs = np.split(codes, [self._fresh.num_rows])
        cells = self._states() != EVENT
        awaited = np.isin(theirs, held[cells])
        self._fresh = self._fresh.filter(pa.array(~(cells & np.isin(held, theirs))))
        self._heard |= bool(awaited.any())
        wanted = awaited | (answers.column(NUMBER).to_numpy() == 0)
        ends = np.cumsum([table.num_rows for table in came.values()])
        parts = np.split(wanted, ends[:-1])
        return {
            name: table.filter(pa.array(part))
            for (name, table), part in zip(came.items(), parts, strict=True)
        }

    def _order(self) -> Order:
        return ordered(self._counted, self._fresh, self._passed)

    def _missing(self, order: Order, watermark: int) -> Array:
        """Which units have to be opened, among those that all nodes have passed."""
        groups = order.groups
        cut = bounded(groups, self._windows) & (groups.last < watermark)
        missing: Array = cut[groups.of_unit] & (self._states(order.units) != EVENT)
        return missing

    def _lost(self, order: Order, watermark: int, gone: Collection[str]) -> Array:
        """Units that have to be opened and cannot: the windows go on without them."""
        if not gone:
            return np.zeros(0, np.int64)
        missing = self._missing(order, watermark) & self._of(gone, order.units)
        lost: Array = np.flatnonzero(missing)
        return lost

    def _want(self, fresh: Array) -> dict[str, list[int]]:
        """Ask for some cells."""
        wanted: dict[str, list[int]] = {}
        if fresh.any():
            cells = self._fresh.filter(pa.array(fresh))
            for child, number in zip(
                cells[CHILD].to_pylist(), cells[NUMBER].to_pylist(), strict=True
            ):
                wanted.setdefault(child, []).append(number)
            self._mark(np.where(fresh, ASKED, self._states()))
        return wanted

    def _choose_grain(self, order: Order) -> bool:
        """Choose how long cells are; whether child nodes have to be told."""
        starts = ticks(order.units, START)
        if len(starts):
            grain = grain_for(
                order.code,
                order.units.column(ROWS).to_numpy(),
                int(ticks(order.units, LAST).max() - starts.min()) + 1,
                spacing(self._windows),
                len(self._children),
                self._grain,
            )
            if grain != self._grain:
                self._grain = grain
                return True
        return self._grain != UNKNOWN and not self._children <= self._greeted

    def _close(self, order: Order) -> pa.Table:
        """Rows of the windows that have closed; units that no others need are forgotten."""
        done = (order.groups.last < self.until)[order.groups.of_unit]
        self._untold += int((self._states()[done] != EVENT).sum())
        self._fresh = order.units.filter(pa.array(~done)).combine_chunks()
        step = settle(self._counted, order, done, self._settled)
        self._passed = pa.table([*order.keys.columns, step.passed], schema=self._passed.schema)
        rows = rows_of(self._counted, step, order)
        needed = np.min([closed(w, step.passed) * w.slide for w in self._windows], axis=0)
        still = step.units.column(POSITION).to_numpy() >= needed[step.code]
        self._settled = step.units.filter(pa.array(still)).combine_chunks()
        return rows

    def _states(self, units: pa.Table | None = None) -> Array:
        states: Array = (self._fresh if units is None else units).column(STATE).to_numpy()
        return states

    def _of(self, children: Collection[str], units: pa.Table | None = None) -> Array:
        """Which units are of some child nodes."""
        held = self._fresh if units is None else units
        names = pa.array(sorted(children), pa.string())
        found: Array = pc.is_in(held[CHILD], names).to_numpy()
        return found

    def _mark(self, states: Array) -> None:
        place = self._fresh.schema.get_field_index(STATE)
        self._fresh = self._fresh.set_column(place, self._state, pa.array(states))
