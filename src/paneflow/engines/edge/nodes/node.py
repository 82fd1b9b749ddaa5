"""What all nodes have in common: parts that hold what has come until a watermark lets it go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow as pa

from paneflow.engines.edge.counted import CELLS, PARCELS, Counted
from paneflow.engines.edge.interpreting import COUNTED, EVENTS, GAPS, QUANTILES, SLICES
from paneflow.engines.edge.parts.contract import Part, Tables
from paneflow.engines.edge.parts.counts.cells import Cells
from paneflow.engines.edge.parts.events import RawEvents
from paneflow.engines.edge.parts.matched import Matched
from paneflow.engines.edge.parts.quantiles.passed import PassedOn
from paneflow.engines.edge.parts.quantiles.summaries import Summaries
from paneflow.engines.edge.parts.routes import Routes
from paneflow.engines.edge.parts.rows import LocalRows
from paneflow.engines.edge.parts.sessions import Sessions, SessionsAsked
from paneflow.engines.edge.parts.slices import TimeSlices
from paneflow.engines.edge.question import GAP_OPENINGS, OPENINGS, ROWS, Question
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.engines.edge.summarised import SUMMARIES, Summarised


class Snapshot(NamedTuple):
    """A node's whole state: values that JSON can hold, and tables."""

    about: dict[str, Any]
    tables: dict[str, pa.Table]


class Parts:
    """All parts that a question needs, and how far they have been flushed."""

    def __init__(self, question: Question, lowest: str = "", highest: bool = False) -> None:
        """`lowest`: the name of a child node. `highest`: the root keeps summaries by itself."""
        self.question = question
        self.flushed = BEFORE_ALL
        self._parts: dict[str, Part] = {}
        if question.sliding:
            self._parts[SLICES] = TimeSlices(question, bool(lowest))
        if question.layout is not None and question.sessions:
            asked = SessionsAsked(question.layout, question.sessions, SLICES, OPENINGS)
            self._parts["sessions"] = Sessions(asked, bool(lowest))
        for way, matching in question.matched.items():
            if way == GAPS:
                spans = SessionsAsked(matching.layout, matching.sessions, GAPS, GAP_OPENINGS)
                self._parts[way] = Sessions(spans, bool(lowest))
            else:
                self._parts[way] = Matched(matching, bool(lowest))
        if question.ordered is not None:
            self._parts[EVENTS] = RawEvents(question)
        if question.local is not None:
            self._parts[ROWS] = LocalRows(question)
        self.answering: Summaries | Cells | None = None
        """What a child node keeps for the root to ask for."""
        self.routes: Routes | None = None
        if question.summarised is not None:
            self._summarised(question.summarised, lowest, highest)
        if question.counted is not None:
            self._counted(question.counted, lowest, highest)

    def _summarised(self, asked: Summarised, lowest: str, highest: bool) -> None:
        """What is needed for slices that are sent as summaries."""
        answers = list(asked.answers.values())
        passed = {name: asked.schemas[name] for name in (SUMMARIES, *answers)}
        if lowest:
            self.answering = self._parts[QUANTILES] = Summaries(asked, lowest)
            return
        self.routes = Routes(passed)
        self._parts["routes"] = self.routes
        if not highest:
            self._parts[QUANTILES] = PassedOn(passed, answers, asked.windows)

    def _counted(self, asked: Counted, lowest: str, highest: bool) -> None:
        """What is needed for cells of events."""
        passed = {name: asked.schemas[name] for name in (CELLS, PARCELS)}
        if lowest:
            self.answering = self._parts[COUNTED] = Cells(asked, lowest)
            return
        self.routes = Routes(passed)
        self._parts["routes"] = self.routes
        if not highest:
            self._parts[COUNTED] = PassedOn(passed, passed, [])

    def take(self, child: str, tables: Tables) -> None:
        """Take what a node below has reported."""
        for part in self._parts.values():
            part.take(child, tables)

    def due(self, watermark: int) -> bool:
        """Whether there is something to say at a watermark."""
        return any(part.due(self.flushed, watermark) for part in self._parts.values())

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        """All that is complete at a watermark, where some nodes below are waited for."""
        found: dict[str, list[pa.Table]] = {}
        for part in self._parts.values():
            for name, table in part.flush(watermark, waited).items():
                found.setdefault(name, []).append(table)
        self.flushed = watermark
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    @property
    def gone(self) -> set[str]:
        """Child nodes that cannot be asked for more."""
        return set() if self.routes is None else self.routes.gone

    def leaves(self, child: str) -> set[str]:
        """The child nodes that are asked through a node below."""
        return set() if self.routes is None else self.routes.leaves(child)

    def give_up(self, child: str, lost: bool) -> None:
        """Wait for a node no more, or wait for it again."""
        for part in self._parts.values():
            part.give_up(child, lost)

    def state(self) -> dict[str, pa.Table]:
        """All that is held, for a snapshot."""
        return {
            f"{name}/{key}": table
            for name, part in self._parts.items()
            for key, table in part.state().items()
        }

    def restore(self, tables: Tables, flushed: int) -> None:
        """Take up what `state` gave."""
        self.flushed = flushed
        for name, part in self._parts.items():
            mine = f"{name}/"
            part.restore({k.removeprefix(mine): t for k, t in tables.items() if k.startswith(mine)})


def below(prefix: str, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables of a snapshot under a prefix, without it."""
    return {k.removeprefix(prefix): t for k, t in tables.items() if k.startswith(prefix)}
