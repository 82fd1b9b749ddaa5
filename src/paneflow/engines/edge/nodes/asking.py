"""What the root knows of slices from their summaries, and what it still has to ask for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.edges import Edges
from paneflow.engines.edge.parts.quantiles.filling import filled, gap_positions
from paneflow.engines.edge.parts.quantiles.narrowing import Spans, undecided
from paneflow.engines.edge.parts.quantiles.runs import Runs, read_runs
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.engines.edge.summarised import NUMBER, POSITION, SUMMARIES, Summarised
from paneflow.engines.live.closed import IN_NO_WINDOW, last_ends
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import order_events
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import ROWS, START

KEPT = "kept"
"""The column that tells whether the child node keeps a slice for the root to ask about."""


class Answered(NamedTuple):
    """What a step of the watermark brought."""

    until: int
    """Windows that end by this time are answered."""
    rows: pa.Table
    doubtful: Array
    """Which rows are made without something that was out of reach."""
    asks: dict[str, Any] | None
    """What child nodes are to be asked or told, if anything."""


class Asking:
    """Holds summaries of slices, and fills their gaps as far as windows need it.

    A gap that has been asked for is held as a negative number.
    """

    def __init__(self, summarised: Summarised) -> None:
        self._summarised = summarised
        self._edges = Edges(summarised.windows)
        kept = pa.field(KEPT, pa.bool_())
        self._held = summarised.summaries.append(kept).empty_table()
        self._answers: dict[str, list[pa.Table]] = {}
        """Answers that have come and are not filled in, by column."""
        self._heard = False
        """Whether something has come since the last step that is answered at once."""
        self._finished = False
        """Whether child nodes keep slices that they do not know to be done with."""
        self.until = BEFORE_ALL

    def due(self, before: int, watermark: int) -> bool:
        """Whether there is something to say, now that the watermark has moved."""
        return self._heard or self._edges.by(watermark) > self._edges.by(before)

    def take(self, tables: Tables) -> int:
        """Take what nodes below have reported. Gives how many events come too late."""
        late = 0
        if SUMMARIES in tables:
            fresh = tables[SUMMARIES]
            ends = last_ends(self._summarised.windows, ticks(fresh, START))
            over = (ends <= self.until) & (ends > IN_NO_WINDOW)
            late = int(fresh.column(ROWS).to_numpy()[over].sum())
            names = self._summarised.gaps.values()
            gapped = [fresh.column(name).is_valid().to_numpy() for name in names]
            kept = np.logical_or.reduce(gapped)
            fresh = fresh.append_column(KEPT, pa.array(kept))
            self._held = pa.concat_tables([self._held, fresh.filter(pa.array(ends > self.until))])
            if (kept & over).any():
                self._finished = self._heard = True
        for column, name in self._summarised.answers.items():
            if name in tables and tables[name].num_rows:
                self._answers.setdefault(column, []).append(tables[name])
                self._heard = True
        return late

    def repeat(self, children: Collection[str]) -> None:
        """Ask some child nodes again for what they have not answered."""
        self._fill_all()
        theirs = self._of(children)
        for column, runs in self._runs().items():
            again = theirs[runs.slices] & (runs.gaps < 0)
            if again.any():
                self._heard = True
                self._keep(column, runs._replace(gaps=np.where(again, -runs.gaps, runs.gaps)))

    def advance(self, watermark: int, gone: Collection[str]) -> Answered:
        """Answer windows as far as possible, where some child nodes are out of reach."""
        self._heard = False
        self._fill_all()
        out_of_reach = self._of(gone)
        windows, ends = self._windows(watermark)
        until, doubtful = watermark, list[int]()
        wanted: dict[str, dict[str, list[list[int]]]] = {}
        for column, runs in self._runs().items():
            window, run = self._undecided(column, runs, windows)
            lost = out_of_reach[runs.slices[run]]
            if not lost.all():
                until = min(until, int(ends[window[~lost]].min()) - 1)
            doubtful += ends[window[lost]].tolist()
            fresh = np.unique(run[~lost & (runs.gaps[run] > 0)])
            if len(fresh):
                self._want(column, runs, fresh, wanted)
        before, self.until = self.until, max(self.until, until)
        rows = self._close(before)
        asks = {"done": self.until, "of": wanted} if wanted or self._finished else None
        self._finished = False
        return Answered(self.until, rows, np.isin(ticks(rows, "end"), doubtful), asks)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        self._fill_all()
        about = {"heard": self._heard, "finished": self._finished, "until": self.until}
        return Snapshot(about, {"held": self._held})

    def restore(self, snapshot: Snapshot) -> None:
        """Take up what `snapshot` gave."""
        about = snapshot.about
        self._heard, self._finished = about["heard"], about["finished"]
        self.until = about["until"]
        self._held = snapshot.tables["held"]
        self._answers = {}

    def _runs(self) -> dict[str, Runs]:
        """The runs of all slices that are held, by column."""
        asked = self._summarised
        return {
            column: read_runs(self._held.column(name), self._held.column(asked.gaps[column]))
            for column, name in asked.runs.items()
        }

    def _keep(self, column: str, runs: Runs) -> None:
        """Hold other runs of a column."""
        asked = self._summarised
        name = asked.runs[column]
        for field, lists in (
            (asked.summaries.field(name), runs.as_lists(asked.summaries.field(name).type)),
            (asked.summaries.field(asked.gaps[column]), runs.gap_lists()),
        ):
            place = asked.summaries.get_field_index(field.name)
            self._held = self._held.set_column(place, field, lists)

    def _of(self, children: Collection[str]) -> Array:
        """Which slices are of some child nodes."""
        names = pa.array(sorted(children), pa.string())
        found: Array = pc.is_in(self._held[CHILD], names).to_numpy()
        return found

    def _fill_all(self) -> None:
        """Fill in all answers together: it takes as long as for one of them."""
        answers, self._answers = self._answers, {}
        for column, tables in answers.items():
            self._fill(column, pa.concat_tables(tables))

    def _fill(self, column: str, answers: pa.Table) -> None:
        whose = [CHILD, NUMBER]
        both = pa.concat_tables([self._held.select(whose), answers.select(whose)]).combine_chunks()
        codes, _ = encode_keys(both, (CHILD, NUMBER))
        held, asked = np.split(codes, [self._held.num_rows])
        order = np.argsort(held)
        place = np.searchsorted(held, asked, sorter=order)
        # Slices that all windows are done with are not held any more.
        known = place < len(held)
        known[known] = held[order[place[known]]] == asked[known]
        answers = answers.filter(pa.array(known))
        values = read_runs(answers.column(self._summarised.runs[column]))
        slices, positions = order[place[known]], answers.column(POSITION).to_numpy()
        self._keep(column, filled(self._runs()[column], slices, positions, values))

    def _windows(self, watermark: int) -> tuple[Spans, Array]:
        """The windows that end by a watermark and are not answered, and when they end."""
        asked, held = self._summarised, self._held
        names = tuple(f"key:{name}" for name in asked.query.key)
        starts = ticks(held, START)
        if held.num_rows == 0 or watermark == BEFORE_ALL:
            none = np.zeros(0, np.int64)
            return Spans(none, none, none), none
        codes, keys = encode_keys(held.select([START, *names]).combine_chunks(), names)
        events = order_events(codes, keys, starts, starts)
        (part,) = events.parts(1)
        ends_in = (self._after(), watermark)
        found = find_ranges(asked.windows, part, Arranged(events, {}), ends_in)
        ends = [
            window.extent(seq, seq, seq)[1]
            for window, span in zip(asked.windows, found.spans, strict=True)
            for seq in (found.ranges.seq[span],)
        ]
        slices = events.arrange(np.arange(len(starts)))
        return Spans(slices, found.ranges.lo, found.ranges.hi), np.concatenate(ends)

    def _undecided(self, column: str, runs: Runs, windows: Spans) -> tuple[Array, Array]:
        """Windows, and runs the gaps behind which they need."""
        gapped = np.append(0, np.cumsum(runs.gapped()[windows.slices]))
        some = np.flatnonzero(gapped[windows.hi] > gapped[windows.lo])
        if len(some) == 0:
            return some, some
        ranks, _ = read_column(pa.table({column: runs.values}), column).ranked
        chosen = Spans(windows.slices, windows.lo[some], windows.hi[some])
        window, run = undecided(runs, ranks, chosen, self._summarised.shares[column])
        return some[window], run

    def _want(
        self, column: str, runs: Runs, fresh: Array, wanted: dict[str, dict[str, list[list[int]]]]
    ) -> None:
        """Ask for the gaps behind some runs."""
        slices = self._held.take(pa.array(runs.slices[fresh]))
        about = (slices[NUMBER].to_numpy(), gap_positions(runs)[fresh], runs.gaps[fresh])
        gaps = np.stack(about, axis=1).tolist()
        for child, gap in zip(slices[CHILD].to_pylist(), gaps, strict=True):
            wanted.setdefault(child, {}).setdefault(column, []).append(gap)
        marked = runs.gaps.copy()
        marked[fresh] *= -1
        self._keep(column, runs._replace(gaps=marked))

    def _close(self, before: int) -> pa.Table:
        """Rows of the windows that are answered now; slices that no others need are forgotten."""
        asked, held = self._summarised, self._held
        if self.until == before:
            return asked.query.result_schema(asked.layout.source).empty_table()
        known = held.filter(pa.array(ticks(held, START) < self.until))
        known = known.sort_by([(CHILD, "ascending"), (NUMBER, "ascending")])
        for column, name in asked.runs.items():
            runs = read_runs(known.column(name), known.column(asked.gaps[column]))
            # Values that are left out decide nothing: they count where the run below them is.
            whole = runs._replace(counts=runs.counts + np.abs(runs.gaps))
            field = asked.detailed.field(name)
            place = asked.detailed.get_field_index(name)
            known = known.set_column(place, field, whole.as_lists(field.type))
        after = None if before == BEFORE_ALL else before
        rows = asked.rows(known.select(asked.detailed.names), after, self.until)
        needed = last_ends(asked.windows, ticks(held, START)) > self.until
        self._finished |= bool((held.column(KEPT).to_numpy() & ~needed).any())
        self._held = held.filter(pa.array(needed)).combine_chunks()
        return rows

    def _after(self) -> int | None:
        return None if self.until == BEFORE_ALL else self.until
