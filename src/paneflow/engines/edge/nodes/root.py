"""The root: what the nodes below report becomes rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.interpreting import EVENTS, SLICES
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.nodes.asking import Asking
from paneflow.engines.edge.nodes.below import Below
from paneflow.engines.edge.nodes.corrections import Corrections
from paneflow.engines.edge.nodes.counting import Counting
from paneflow.engines.edge.nodes.held import HeldWindows
from paneflow.engines.edge.nodes.merge import Merge
from paneflow.engines.edge.nodes.node import Snapshot, below
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.question import COMPLETE, NODE, ROWS, Question
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL, Joined, Record, Reported, Said
from paneflow.slicing.keys import encode_keys


class Root(Merge):
    """Gives the rows of windows that have closed on all nodes that are waited for.

    Args:
        name: The node's name.
        question: What is asked.
        children: The nodes below that are waited for from the start; others may join.
        keep: For how long windows that were closed without a missing node wait to be completed,
            in the unit of the time column (microseconds for timestamps).
        below: How far the nodes below have come, if another query of the node knows that already.
    """

    highest = True

    def __init__(
        self,
        name: str,
        question: Question,
        children: Iterable[str] = (),
        keep: int = 3_600_000_000,
        below: Below | None = None,
    ) -> None:
        super().__init__(name, question, children, below)
        self._corrections = None if question.layout is None else Corrections(question, keep)
        self.counts |= {"rows": 0, "late": 0, "corrected": 0}
        self.released: pa.Table | None = None
        """The slices that were final with the last flush, for queries that share them."""
        self._windows = None
        in_order = question.layout is not None and question.layout.in_order
        if question.together is not None:
            self._windows = HeldWindows(question.together, question.source, in_order)
        self._asking: Asking | Counting | None = None
        if question.summarised is not None:
            self._asking = Asking(question.summarised)
        elif question.counted is not None:
            self._asking = Counting(question.counted)

    @property
    def until(self) -> int:
        """Windows that end by this time have rows.

        It is behind the watermark while child nodes are asked for more than they reported.
        """
        return self.watermark if self._asking is None else self._asking.until

    @property
    def flushed(self) -> int:
        """The watermark of the last flush."""
        return self._parts.flushed

    def give(self, slices: pa.Table) -> None:
        """Take slices that another query of this node has released."""
        self._parts.take(self.name, {SLICES: slices})

    @property
    def due(self) -> bool:
        """Whether there is something to say."""
        heard = self._asking is not None and self._asking.due(self._parts.flushed, self.watermark)
        return heard or super().due

    def take(self, record: Record) -> Said:
        """Take a record; only a flush is answered."""
        if isinstance(record, Joined) and self._asking is not None:
            self._asking.repeat(self._parts.leaves(record.child))
        return super().take(record)

    def _take(self, record: Reported) -> None:
        super()._take(record)
        if self._asking is not None:
            self.counts["late"] += self._asking.take(record.report.tables)

    def _say(self) -> Said:
        found = [self._question.row_schema.empty_table()]
        if self._asking is not None:
            found.append(self._answered(self._asking))
        tables = self._parts.flush(self.until, self._below.waited)
        self._parts.flushed = self.watermark
        self.released = tables.get(SLICES)
        if self._windows is not None:
            found.append(self._close(self._windows, tables))
        if ROWS in tables:
            found.append(self._local(tables[ROWS]))
        for way, matching in self._question.matched.items():
            found.append(self._completed(matching.rows(tables[way])))
        rows = in_order(pa.concat_tables(found), self._question)
        self.counts["rows"] += rows.num_rows
        slices = None
        if self._question.layout is not None and tables[SLICES].num_rows:
            slices = self._question.layout.described(tables[SLICES])
        return Said(rows=rows, slices=slices, asks=self._asks())

    def _answered(self, asking: Asking | Counting) -> pa.Table:
        """Rows of windows for which child nodes have been asked all that is needed."""
        answered = asking.advance(self.watermark, self._parts.gone)
        if answered.asks is not None:
            self._asked.append(answered.asks)
        complete = (ticks(answered.rows, "end") <= self._missing_since()) & ~answered.doubtful
        return self._row(answered.rows, None, complete)

    def _close(self, windows: HeldWindows, tables: dict[str, pa.Table]) -> pa.Table:
        """Rows of windows that are answered from what all nodes report."""
        question = self._question
        slices = tables.get(SLICES, pa.table({}))
        if CHILD in slices.column_names:
            slices = slices.sort_by(CHILD)
        events = question.source.empty_table()
        if EVENTS in tables:
            events = tables[EVENTS].select(question.source.names).cast(question.source)
        closed, missing = windows.watermark, self._missing_since()
        corrections, saved, corrected = (
            self._corrections,
            0,
            self._question.row_schema.empty_table(),
        )
        if corrections is not None:
            if missing < self.until:
                corrections.begin(missing, windows.slices)
            if corrections.waits:
                saved = corrections.add(slices, closed)
                rows = corrections.complete(missing, closed, self.watermark)
                corrected = self._row(rows, None, np.ones(rows.num_rows, np.bool_))
                self.counts["corrected"] += rows.num_rows
        rows, late = windows.take(slices, events, self.until)
        self.counts["late"] += max(late - saved, 0)
        return pa.concat_tables([corrected, self._completed(rows)])

    def _missing_since(self) -> int:
        """Windows that end by this are complete."""
        return min(self.missing.values(), default=AFTER_ALL)

    def _completed(self, rows: pa.Table) -> pa.Table:
        """Rows that tell whether some node below was missing when they were made."""
        complete = ticks(rows, "end") <= self._missing_since()
        return self._row(rows, None, complete)

    def _local(self, rows: pa.Table) -> pa.Table:
        """Rows of windows that child nodes have answered."""
        return self._row(
            rows.drop_columns(CHILD), rows.column(CHILD), np.ones(rows.num_rows, np.bool_)
        )

    def _row(self, rows: pa.Table, node: pa.ChunkedArray | None, complete: Array) -> pa.Table:
        """Rows with the columns that a tree adds."""
        if self._question.local is not None:
            node = pa.nulls(rows.num_rows, pa.string()) if node is None else node
            rows = rows.add_column(1 + len(self._question.query.key), NODE, node)
        return rows.append_column(COMPLETE, pa.array(complete)).cast(self._question.row_schema)

    def snapshot(self) -> Snapshot:
        about, tables = super().snapshot()
        if self._corrections is not None:
            about["since"] = self._corrections.since
            tables |= {f"kept/{k}": kept for k, kept in self._corrections.state().items()}
        if self._windows is not None:
            about["windows"] = self._windows.watermark
            tables |= {f"windows/{k}": held for k, held in self._windows.state().items()}
        if self._asking is not None:
            about["asking"], mine = self._asking.snapshot()
            tables |= {f"asking/{k}": held for k, held in mine.items()}
        return Snapshot(about, tables)

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        if self._corrections is not None:
            self._corrections.restore(below("kept/", snapshot.tables), snapshot.about["since"])
        if self._windows is not None:
            self._windows.restore(below("windows/", snapshot.tables), snapshot.about["windows"])
        if self._asking is not None:
            held = below("asking/", snapshot.tables)
            self._asking.restore(Snapshot(snapshot.about["asking"], held))


def in_order(rows: pa.Table, question: Question) -> pa.Table:
    """Rows by (end, window, seq, key)."""
    if rows.num_rows < 2:
        return rows
    names = ["window", *question.query.key, *([NODE] if question.local is not None else [])]
    codes = [encode_keys(rows, (name,))[0] for name in names]
    seq = rows.column("seq").fill_null(BEFORE_ALL).to_numpy()
    order = np.lexsort((*reversed(codes[1:]), seq, codes[0], ticks(rows, "end")))
    return rows.take(pa.array(order))
