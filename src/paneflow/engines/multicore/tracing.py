"""Shows where in a user's own functions an error comes from.

Compiled code knows only that it failed. The functions it was compiled from are still at hand: run
as plain Python on the values at hand, they fail again, with a traceback into the user's own lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paneflow.aggregates.operator import Array, Operator, Partials


def absorb_plainly(
    operator: Operator, cells: Array, which: Array, inputs: Sequence[Array], partial: Partials
) -> None:
    """As the compiled loop in which events contribute to cells, but nothing is kept."""
    if operator.compiled and operator.absorb is None and operator.lift is not None:
        present, *values = inputs
        for cell, event in zip(cells.tolist(), which.tolist(), strict=True):
            if len(present) == 0 or present[event]:
                event_values = (_plain(v[event]) for v in values)
                lifted = operator.lift(*event_values, *operator.parameters)
                operator.combine(_partial(operator, partial, cell), lifted)


def combine_plainly(
    operator: Operator, cells: Array, which: Array, parts: Partials, partial: Partials
) -> None:
    """As the compiled loop in which panes contribute to cells, but nothing is kept."""
    if operator.compiled:
        for cell, pane in zip(cells.tolist(), which.tolist(), strict=True):
            held = _partial(operator, partial, cell)
            operator.combine(held, _partial(operator, parts, pane))


def _partial(operator: Operator, columns: Partials, at: int) -> Any:
    cells = tuple(_plain(column[at]) for column in columns)
    return cells[0] if operator.bare else cells


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
