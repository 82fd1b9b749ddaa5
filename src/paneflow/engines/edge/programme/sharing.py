"""Whether the slices of one query hold all that another needs, and how they are read for it.

That is so if every edge of the other's windows is one of theirs, and all that it counts, folds and
keeps is in their columns. Finer slices do no harm: windows merge as many as they need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.values import kind_of
from paneflow.engines.edge.interpreting import SLICES
from paneflow.engines.edge.question import Question
from paneflow.slicing.layout import stored_operators
from paneflow.slicing.slices import SLICING, TIME_SLICES
from paneflow.windows import Sliding


class Sharing(NamedTuple):
    """How slices of a query are read as those of another."""

    columns: dict[str, str]
    """The column of the slices that there are, for each that is needed."""
    slicings: list[str]
    """Which of the slices are needed: those of time windows, or of some sessions."""
    schema: pa.Schema

    def read(self, slices: pa.Table) -> pa.Table:
        """The slices of the other query."""
        mine = slices.filter(pc.is_in(slices[SLICING], pa.array(self.slicings)))
        return mine.select(list(self.columns.values())).rename_columns(self.schema.names)


def sharing(host: Question, guest: Question) -> Sharing | str:
    """How a query is answered from the slices of another, or why it cannot be."""
    objection = _objection(host, guest)
    if objection is not None:
        return objection
    assert host.layout is not None and guest.layout is not None
    there, needed = host.layout.schema, guest.layout.schema
    renamed = _renamed(host, guest)
    columns = {name: renamed.get(name, name) for name in needed.names}
    for name, found in columns.items():
        if found not in there.names or not there.field(found).type.equals(needed.field(name).type):
            return f"its slices need {name!r}, which those that are cut do not hold"
    slicings = [*([TIME_SLICES] if guest.sliding else []), *guest.sessions]
    return Sharing(columns, slicings, needed)


def _objection(host: Question, guest: Question) -> str | None:
    """What keeps a query from using the slices of another, apart from their columns."""
    other = [label for label, way in guest.ways.items() if way.name != SLICES]
    if other:
        return f"window {other[0]!r} is not answered from slices alone"
    if host.layout is None or host.summarised is not None or host.counted is not None:
        return "the slices that are cut are not sent as they are"
    if set(host.query.key) != set(guest.query.key):
        return f"slices are cut by {_keys(host)}, and it has {_keys(guest)}"
    for label, window in guest.query.windows.items():
        if isinstance(window, Sliding):
            if not all(_is_edge(edge, host.sliding) for edge in window.edges):
                return f"window {label!r} ({window}) begins or ends between the edges of slices"
        elif str(window) not in host.sessions:
            return f"sessions such as those of {label!r} ({window}) are not cut"
    return None


def _is_edge(edge: tuple[int, int], windows: Iterable[Sliding]) -> bool:
    """Whether all edges of a progression are edges of windows."""
    phase, step = edge
    known = (known for window in windows for known in window.edges)
    return any(step % often == 0 and (phase - first) % often == 0 for first, often in known)


def _renamed(host: Question, guest: Question) -> dict[str, str]:
    """Columns of partials, which are numbered in each query for itself."""
    assert host.layout is not None and guest.layout is not None
    there = stored_operators(host.layout.query, _kinds(host))
    names = {}
    for operator, prefix in stored_operators(guest.layout.query, _kinds(guest)).items():
        found = there.get(operator, "")
        for component in operator.components:
            names[f"{prefix}.{component.name}"] = f"{found}.{component.name}"
    return names


def _kinds(question: Question) -> Kinds:
    types = question.query.types(question.source)
    return {name: kind_of(type_, name) for name, type_ in types.items()}


def _keys(question: Question) -> str:
    return f"the key {', '.join(question.query.key)}" if question.query.key else "no key"
