"""Events of a batch become partials: of slices, or of runs of a session."""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.lowering import Lowering, column_set
from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.events import Presence
from paneflow.slicing.fold import fold


def folded(
    lowering: Lowering, arranged: Arranged, moments: Array, edges: Array
) -> tuple[dict[tuple[str, ...], Array], dict[Operator, Partials]]:
    """How many events there are between two edges, and what they amount to."""
    presences = {columns: _presence(columns, arranged) for columns in lowering.counted}
    partials = {
        operator: folded_one(
            operator, arranged, moments, edges, presences.get(column_set(operator.columns))
        )
        for operator in lowering.operators
    }
    counted = {columns: np.diff(p.position(edges)) for columns, p in presences.items()}
    return counted, partials


def folded_one(
    operator: Operator,
    arranged: Arranged,
    moments: Array,
    edges: Array,
    presence: Presence | None = None,
) -> Partials:
    """What an operator makes of the events between two edges; `presence`: those it counts."""
    if presence is None:
        presence = _presence(column_set(operator.columns), arranged)
    inputs = [
        presence.keep(moments if i.column == TIME else arranged.form(i.column, i.form))
        for i in operator.inputs
    ]
    return fold(operator, inputs, presence.position(edges))


def _presence(columns: tuple[str, ...], arranged: Arranged) -> Presence:
    """Which events have a value in all of some columns."""
    masks = [m for m in map(arranged.valid, columns) if m is not None]
    return Presence(np.logical_and.reduce(masks) if masks else None)
