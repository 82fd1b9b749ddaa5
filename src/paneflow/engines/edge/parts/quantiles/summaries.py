"""Slices of a child node that are sent as summaries, and kept until the root is done with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.edges import Edges
from paneflow.engines.edge.parts.quantiles.runs import Runs, read_runs, spread, thinned
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.parts.waiting import FROM, Waiting, split
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.engines.edge.summarised import DETAILED, NUMBER, POSITION, SUMMARIES, Summarised
from paneflow.engines.live.closed import last_ends
from paneflow.slicing.slices import START

COLUMN = "column"
LENGTH = "length"
WANTED = pa.schema(
    [(COLUMN, pa.string()), (NUMBER, pa.int64()), (POSITION, pa.int64()), (LENGTH, pa.int64())]
)
"""Gaps that the root asks for: of which column and slice, where they begin, and their values."""


class Summaries:
    """Slices that wait for the edge behind them, and those of which the root may ask for more."""

    def __init__(self, summarised: Summarised, name: str) -> None:
        self._summarised = summarised
        self._name = name
        self._edges = Edges(summarised.windows)
        self._waiting = Waiting(summarised.detailed)
        runs = [summarised.detailed.field(column) for column in summarised.runs.values()]
        number = pa.field(NUMBER, pa.int64())
        self._kept = pa.schema([number, summarised.detailed.field(START), *runs]).empty_table()
        self._wanted = WANTED.empty_table()
        self._numbered = 0
        self._done = BEFORE_ALL

    @property
    def asked_for(self) -> bool:
        """Whether the root may still ask for something."""
        return len(self._waiting) > 0 or self._kept.num_rows > 0

    def take(self, child: str, tables: Tables) -> None:
        self._waiting.add(child, tables.get(DETAILED))

    def ask(self, about: Mapping[str, Any]) -> None:
        """Take what the root asks; it is answered with the next report."""
        asked = about.get("of", {}).get(self._name, {})
        for column, gaps in asked.items():
            number, position, length = np.array(gaps, np.int64).T
            name = pa.repeat(pa.scalar(column), len(gaps))
            fresh = pa.table([name, *map(pa.array, (number, position, length))], schema=WANTED)
            self._wanted = pa.concat_tables([self._wanted, fresh])
        self._done = max(self._done, about["done"])
        self._kept = self._still_needed(self._kept)

    def due(self, before: int, watermark: int) -> bool:
        return self._wanted.num_rows > 0 or self._edges.by(watermark) > self._edges.by(before)

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        starts = ticks(self._waiting.all(), START)
        ready = self._waiting.keep(starts >= self._edges.by(watermark)).drop_columns(FROM)
        tables = self._answers()
        if ready.num_rows:
            tables[SUMMARIES] = self._summaries(self._summarised.compact(ready))
        return tables

    def give_up(self, child: str, lost: bool) -> None:
        """There is no node below."""

    def state(self) -> dict[str, pa.Table]:
        about = pa.table({"numbered": [self._numbered], "done": [self._done]})
        return {
            "waiting": self._waiting.all(),
            "kept": self._kept,
            "wanted": self._wanted,
            "about": about,
        }

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])
        self._kept = state["kept"]
        self._wanted = state["wanted"]
        self._numbered = state["about"]["numbered"][0].as_py()
        self._done = state["about"]["done"][0].as_py()

    def _summaries(self, slices: pa.Table) -> pa.Table:
        """Summaries of slices, which are kept if something is left out of them."""
        asked = self._summarised
        numbers = pa.array(np.arange(slices.num_rows) + self._numbered + 1)
        self._numbered += slices.num_rows
        detail = slices.append_column(NUMBER, numbers).select(self._kept.column_names)
        gapped = np.zeros(slices.num_rows, np.bool_)
        for column, name in asked.runs.items():
            points = thinned(read_runs(slices.column(name)), len(asked.shares[column]))
            gapped |= points.gapped()
            place = slices.schema.get_field_index(name)
            kind = asked.detailed.field(name).type
            slices = slices.set_column(place, name, points.as_lists(kind))
            slices = slices.append_column(asked.gaps[column], points.gap_lists())
        self._kept = pa.concat_tables([self._kept, self._still_needed(split(detail, gapped)[0])])
        mine = pa.repeat(pa.scalar(self._name), slices.num_rows)
        named = slices.append_column(CHILD, mine).append_column(NUMBER, numbers)
        return named.cast(asked.summaries)

    def _still_needed(self, kept: pa.Table) -> pa.Table:
        """Slices some of whose windows have no rows yet."""
        ends = last_ends(self._summarised.windows, ticks(kept, START))
        return split(kept, ends > self._done)[0]

    def _answers(self) -> dict[str, pa.Table]:
        """The values in the gaps that were asked for."""
        tables = {}
        for column, table in self._summarised.answers.items():
            wanted = self._wanted.filter(pc.equal(self._wanted[COLUMN], column))
            wanted = wanted.filter(pc.is_in(wanted[NUMBER], self._kept[NUMBER].combine_chunks()))
            if wanted.num_rows:
                tables[table] = self._answer(column, wanted).cast(self._summarised.schemas[table])
        self._wanted = WANTED.empty_table()
        return tables

    def _answer(self, column: str, wanted: pa.Table) -> pa.Table:
        name = self._summarised.runs[column]
        kept = self._kept.filter(pc.is_in(self._kept[NUMBER], wanted[NUMBER].combine_chunks()))
        runs = read_runs(kept.column(name))
        numbers, position, length = (_integers(wanted, c) for c in (NUMBER, POSITION, LENGTH))
        place = np.searchsorted(_integers(kept, NUMBER), numbers)
        begin = runs.before[runs.offsets[place]] + position
        first = np.searchsorted(runs.before, begin)
        lengths = np.searchsorted(runs.before, begin + length) - first
        chosen = spread(first, lengths)
        offsets = np.append(0, np.cumsum(lengths))
        values = runs.values.take(pa.array(chosen))
        answer = Runs(values, runs.counts[chosen], np.zeros(len(chosen), np.int64), offsets)
        mine = pa.repeat(pa.scalar(self._name), wanted.num_rows)
        columns = {CHILD: mine, NUMBER: wanted[NUMBER], POSITION: wanted[POSITION]}
        return pa.table(columns | {name: answer.as_lists(kept.schema.field(name).type)})


def _integers(rows: pa.Table, column: str) -> Array:
    values: Array = rows.column(column).to_numpy()
    return values
