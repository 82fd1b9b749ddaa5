"""Sessions of several nodes: one where their gaps overlap, however their pieces arrive.

A piece of a session stays on its node until the session has closed there, so that it travels once.
Meanwhile the node tells, once, when the session began: an *opening*. Other nodes' sessions that end
more than a gap before every opening have closed, and need not wait for a whole session to end. That
is the next session's start that "Disco" sends with each session. An opening of which nothing comes,
because the node below that told it was given up or has ended, is taken back.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.layouts import OVER, Layout, opening_of
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.parts.spans import Spans, covered, opened
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.engines.live.closed import ended_sessions
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import LAST, SLICING, START
from paneflow.windows import Session


class SessionsAsked(NamedTuple):
    """Which sessions: how their pieces look, the windows by slicing, the tables of a report."""

    layout: Layout
    windows: dict[str, Session]
    pieces: str
    openings: str


class Sessions:
    """Pieces of sessions that wait until their sessions have closed on every node below."""

    def __init__(self, asked: SessionsAsked, lowest: bool) -> None:
        """`lowest`: all pieces are of this node's own events."""
        self._layout, self._sessions, self._of_pieces, self._of_openings = asked
        self._lowest = lowest
        self._keys = [f"key:{name}" for name in self._layout.query.key]
        self._pieces = Waiting(self._layout.schema)
        opening = pa.schema(list(opening_of(self._layout.schema))[:-1])
        self._openings = Waiting(opening)
        self._told = opening.empty_table()
        """Openings that the node above knows of."""

    def take(self, child: str, tables: Tables) -> None:
        came = tables.get(self._of_pieces)
        if came is not None:
            of_sessions = pc.is_in(came[SLICING], pa.array(list(self._sessions)))
            pieces = came.filter(of_sessions)
            self._pieces.add(child, pieces)
            self._close(child, pieces)
        told = tables.get(self._of_openings)
        if told is not None and told.num_rows:
            self._retract(child, told.filter(told[OVER]))
            self._openings.add(child, told.filter(pc.invert(told[OVER])))

    def due(self, before: int, watermark: int) -> bool:
        if watermark == before:
            return False
        if BEFORE_ALL in (before, watermark) or watermark == AFTER_ALL:
            return True
        gap = min(max(window.gap.value, 1) for window in self._sessions.values())
        return watermark // gap > before // gap

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        pieces, openings = self._pieces.all(), self._openings.all()
        # A node that has ended or was given up reports no more sessions.
        openings = openings.filter(pc.is_in(openings[FROM], pa.array(list(waited), pa.string())))
        both = pa.concat_tables([self._opening(pieces), self._opening(openings)])
        codes = encode_keys(both.combine_chunks(), tuple(self._keys))[0]
        start = ticks(both, START)
        # A session that is open somewhere lasts until now, whatever has been seen of it.
        last = np.append(ticks(pieces, LAST), np.maximum(ticks(openings, START), watermark))
        closed = np.zeros(len(start), np.bool_)
        begun: list[Array] = []
        for slicing, window in self._sessions.items():
            rows = np.flatnonzero(pc.equal(both[SLICING], slicing).to_numpy())
            mine = Spans(codes[rows], start[rows], last[rows])
            closed[rows] = ended_sessions(*mine, window, watermark)
            begun.append(rows[opened(mine, window, watermark, closed[rows])])
        ready = self._pieces.keep(~closed[: pieces.num_rows])
        slices = self._layout.merged(ready.drop_columns(FROM), self._lowest)
        still = both.filter(pa.array(~closed)), last[~closed]
        told = self._tell(both.take(pa.array(np.concatenate(begun))), slices, *still)
        return {self._of_pieces: slices, self._of_openings: told}

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has reported stays; of its openings `flush` is told."""

    def state(self) -> dict[str, pa.Table]:
        return {
            "pieces": self._pieces.all(),
            "openings": self._openings.all(),
            "told": self._told,
        }

    def restore(self, state: Tables) -> None:
        self._pieces.replace(state["pieces"])
        self._openings.replace(state["openings"])
        self._told = state["told"]

    def _close(self, child: str, pieces: pa.Table) -> None:
        """Forget the openings of a node's sessions that it has now reported."""
        openings = self._openings.all()
        if openings.num_rows and pieces.num_rows:
            theirs = pc.equal(openings[FROM], child).to_numpy()
            over = np.zeros(openings.num_rows, np.bool_)
            over[theirs] = self._covered(openings.filter(pa.array(theirs)), pieces)
            self._openings.keep(~over)

    def _retract(self, child: str, over: pa.Table) -> None:
        """Forget openings whose sessions a node will not report."""
        openings = self._openings.all()
        if openings.num_rows and over.num_rows:
            named = self._opening(over).append_column(FROM, pa.repeat(child, over.num_rows))
            names = (SLICING, *self._keys, START, FROM)
            both = pa.concat_tables([openings.select(names), named.select(names)])
            codes, _ = encode_keys(both.combine_chunks(), names)
            self._openings.keep(~np.isin(codes[: len(openings)], codes[len(openings) :]))

    def _tell(self, begun: pa.Table, closed: pa.Table, still: pa.Table, last: Array) -> pa.Table:
        """What the node above does not know: sessions that began, and such as come to nothing."""
        known = self._told.filter(pa.array(~self._covered(self._told, closed)))
        valid = self._within(known, still, last)
        held = known.filter(pa.array(valid))
        both = pa.concat_tables([held, begun]).combine_chunks()
        codes, _ = encode_keys(both, (SLICING, *self._keys, START))
        fresh = begun.filter(pa.array(~np.isin(codes[held.num_rows :], codes[: held.num_rows])))
        self._told = pa.concat_tables([held, fresh]).combine_chunks()
        over = known.filter(pa.array(~valid))
        marks = np.repeat([False, True], [fresh.num_rows, over.num_rows])
        return pa.concat_tables([fresh, over]).append_column(OVER, pa.array(marks))

    def _covered(self, openings: pa.Table, pieces: pa.Table) -> Array:
        """Which openings are within a piece of the same session."""
        return self._within(openings, pieces, ticks(pieces, LAST))

    def _within(self, openings: pa.Table, spans: pa.Table, last: Array) -> Array:
        """Which openings are within a span of the same key that lasts until a time."""
        both = pa.concat_tables([self._opening(openings), self._opening(spans)])
        codes, _ = encode_keys(both.combine_chunks(), (SLICING, *self._keys))
        n = openings.num_rows
        whole = Spans(codes[n:], ticks(spans, START), last)
        return covered(codes[:n], ticks(openings, START), whole)

    def _opening(self, rows: pa.Table) -> pa.Table:
        return rows.select([SLICING, *self._keys, START])
