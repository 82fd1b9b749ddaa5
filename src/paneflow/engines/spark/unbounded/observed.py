"""What a stream of `query.over` reports of each batch, among the metrics of Spark's progress.

Spark wants every metric of a plan to have a name of its own, and a plan may hold several frames of
paneflow: a union or a join of two. So frames are numbered as they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

PREFIX = "paneflow-"

_numbers = count(1)


@dataclass(frozen=True)
class Observed:
    """What one frame of `query.over` reports of a batch.

    Attributes:
        rows: How many rows came out.
        late: How many events arrived after all their windows had been emitted.
        dropped: How many events had no time, or one too far ahead.
        held: How many slices and events are remembered by the shards that took part in the batch:
            all shards if the watermark has moved, otherwise those that got events.
        held_bytes: The bytes of those slices and events in memory.

    Example:
        >>> from paneflow.spark import Observed
        >>> Observed(rows=10, late=2, dropped=0, held=600, held_bytes=48000).late
        2
    """

    rows: int
    late: int
    dropped: int
    held: int
    held_bytes: int


def counted(answered: Any) -> Any:
    """A frame of answers, with what it reports summed up under a name of its own."""
    from pyspark.sql import functions as F

    # A task without answers has no sum, only nulls.
    sums = (F.coalesce(F.sum(f.name), F.lit(0)).alias(f.name) for f in fields(Observed))
    return answered.observe(f"{PREFIX}{next(_numbers)}", *sums)


def observed(progress: Mapping[str, Any] | None) -> dict[str, Observed]:
    """What the frames of `query.over` in a streaming query report of a batch.

    Args:
        progress: The progress of a batch: `lastProgress` of Spark's query, an item of its
            `recentProgress`, or `event.progress` in a `StreamingQueryListener`.

    Returns:
        The reports by the names of their metrics, in the order in which the frames were made.
        Nothing before the first batch, when `lastProgress` is None.

    Example:
        >>> from paneflow.spark import observed
        >>> report = {"rows": 10, "late": 2, "dropped": 0, "held": 600, "held_bytes": 48000}
        >>> observed({"observedMetrics": {"paneflow-1": report}})
        {'paneflow-1': Observed(rows=10, late=2, dropped=0, held=600, held_bytes=48000)}
    """
    metrics = {} if progress is None else progress["observedMetrics"]
    names = (name for name in metrics if name.removeprefix(PREFIX).isdecimal())
    ordered = sorted(
        (n for n in names if n.startswith(PREFIX)), key=lambda n: int(n[len(PREFIX) :])
    )
    return {
        name: Observed(**{f.name: int(metrics[name][f.name]) for f in fields(Observed)})
        for name in ordered
    }
