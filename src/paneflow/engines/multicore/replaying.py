"""Shows where in a user's functions an error comes from, where slices and windows are made at once.

As `tracing.py` does for cells: what failed as compiled code is run again as plain Python, over the
same values in the same order, and fails again, in the user's own lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pyarrow as pa

from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.errors import PaneflowError


@contextmanager
def folding(operator: Operator, inputs: Sequence[Array], edges: Array) -> Iterator[None]:
    """Around a fold of events into slices."""
    try:
        yield
    except Exception:
        if operator.compiled and operator.absorb is None and operator.lift is not None:
            columns = [values.tolist() for values in inputs]
            for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                partial = _identity(operator)
                for event in zip(*(values[start:end] for values in columns), strict=True):
                    lifted = operator.lift(*event, *operator.parameters)
                    partial = operator.combine(partial, lifted)
        raise


@contextmanager
def merging(operator: Operator, partials: Partials, lo: Array, hi: Array) -> Iterator[None]:
    """Around a merge of slices into windows."""
    try:
        yield
    except Exception:
        if operator.compiled and all(c.width is None for c in operator.components):
            cells = list(zip(*(column.tolist() for column in partials), strict=True))
            for start, end in zip(lo.tolist(), hi.tolist(), strict=True):
                merged = _identity(operator)
                for cell in cells[start:end]:
                    merged = operator.combine(merged, cell[0] if operator.bare else cell)
        raise


@contextmanager
def answering(
    aggregates: Mapping[str, Aggregate], events: pa.Table, window: str | None = None
) -> Iterator[None]:
    """Around an answer over a table of events; `window` names the column that tells them apart.

    Without it, what is made of a window as a whole cannot be made again.
    """
    try:
        yield
    except PaneflowError:
        raise
    except Exception:
        windows = repeat(0) if window is None else events.column(window).to_pylist()
        for aggregate in aggregates.values():
            if isinstance(aggregate, Defined):
                columns = (events.column(name).to_pylist() for name in aggregate.columns)
                partials: dict[int, Any] = {}
                for number, event in zip(windows, zip(*columns, strict=True), strict=False):
                    if None not in event:
                        before = partials.get(number, aggregate.identity)
                        partials[number] = aggregate.combine(before, aggregate.lift(*event))
                if window is not None:
                    for partial in partials.values():
                        aggregate.lower_one(partial)
        raise


def _identity(operator: Operator) -> Any:
    return operator.identity[0] if operator.bare else operator.identity
