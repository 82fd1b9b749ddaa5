"""Windows that were closed without a node that had gone silent, completed when it returns.

While a node is missing, windows close without it after the patience of the node above, and their
rows say that they are not complete. The root keeps the slices of such windows. When the node has
returned and caught up, their rows are given again, complete. That holds for windows answered from
slices; what comes too late for windows that need all events in order is late.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.engines.live.closed import IN_NO_WINDOW, last_ends
from paneflow.slicing.slices import LAST, ROWS, SLICING, START


class Corrections:
    """The slices of windows that were closed while a node was missing.

    Args:
        question: What is asked.
        keep: For how long, in the unit of the times, windows wait to be completed.
    """

    def __init__(self, question: Question, keep: int) -> None:
        assert question.layout is not None
        self._layout = question.layout
        self._sliding = question.sliding
        self._sessions = question.sessions
        self._keep = keep
        self._kept = self._layout.schema.empty_table()
        self.since = AFTER_ALL
        """Windows that end after this may be incomplete; AFTER_ALL if all are complete."""

    @property
    def waits(self) -> bool:
        """Whether some window has not been completed."""
        return self.since < AFTER_ALL

    def begin(self, missing: int, held: pa.Table) -> None:
        """Some node is missing since a watermark; `held` are the slices of open windows."""
        if not self.waits:
            self.since = missing
            self._kept = held.select(self._layout.schema.names)

    def add(self, slices: pa.Table, closed: int) -> int:
        """Keep slices; how many of their events are not late, though all their windows closed."""
        ends = self._last_ends(slices)
        saved = (ends <= closed) & (ends > self.since)
        self._kept = pa.concat_tables([self._kept, slices.filter(pa.array(ends > self.since))])
        # An event is in a slice of every slicing, and counts once.
        by_slicing = [
            int(slices.column(ROWS).to_numpy()[saved & mine].sum())
            for name in pc.unique(slices.column(SLICING)).to_pylist()
            if (mine := pc.equal(slices.column(SLICING), name).to_numpy()).any()
        ]
        return min(by_slicing, default=0)

    def complete(self, until: int, closed: int, watermark: int) -> pa.Table:
        """Rows of windows that nobody is missing in any more: those that end by `until`.

        Rows had been given before for windows that end by `closed`, and are now by `watermark`.
        """
        oldest = closed - self._keep
        if self.since < oldest and until > BEFORE_ALL:
            self._forget(min(oldest, closed))
        upto = min(until, closed)
        if upto <= self.since:
            self._settle(until, watermark)
            return self._layout.finish(self._kept.slice(0, 0))
        rows = self._layout.finish(self._kept, (self.since, upto))
        ends = ticks(rows, "end")
        rows = rows.filter(pa.array((ends > self.since) & (ends <= upto)))
        labels = pa.array(self._labels(), pa.string())
        unnumbered = pc.is_in(rows["window"].cast(pa.string()), labels)
        seq = pc.if_else(unnumbered, pa.scalar(None, pa.int64()), rows["seq"])
        rows = rows.set_column(rows.schema.get_field_index("seq"), "seq", seq)
        self._settle(until, watermark)
        return rows

    def _labels(self) -> list[str]:
        windows = self._layout.query.windows
        return [label for label, window in windows.items() if str(window) in self._sessions]

    def _settle(self, until: int, watermark: int) -> None:
        """Windows that end by a time are complete, whether or not they are given only now."""
        self._forget(AFTER_ALL if until >= watermark else max(self.since, until))

    def _forget(self, since: int) -> None:
        """Windows that end by a time are settled."""
        self.since = since
        ends = self._last_ends(self._kept)
        self._kept = self._kept.filter(pa.array(ends > since)).combine_chunks()

    def _last_ends(self, slices: pa.Table) -> Array:
        """When the last window that a slice is in ends, or can end at the soonest."""
        ends = last_ends(self._sliding, ticks(slices, START))
        for slicing, window in self._sessions.items():
            mine = pc.equal(slices.column(SLICING), slicing).to_numpy()
            ends[mine] = ticks(slices, LAST)[mine] + window.gap.value
        return np.where(ends == IN_NO_WINDOW, BEFORE_ALL, ends)

    def state(self) -> dict[str, pa.Table]:
        """All that is kept, for a snapshot."""
        return {"kept": self._kept}

    def restore(self, tables: Tables, since: int) -> None:
        """Take up what `state` gave."""
        self._kept, self.since = tables["kept"], since
