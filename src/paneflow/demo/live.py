"""The running job: a stream of files answered by `write_stream`, its rows kept and shown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from paneflow.demo.feed import Feed
from paneflow.demo.plugs import COLUMNS
from paneflow.demo.question import HOUR, LIVE, USE
from paneflow.spark import progress

Plug = tuple[int, str]
Row = dict[str, Any]

FILES_PER_BATCH = 12
"""At most. Of more minutes in a batch, readings that were held up might come in time."""


@dataclass
class Seen:
    """What the rows have told so far."""

    rows: int = 0
    until: datetime | None = None
    """When the latest window ended."""
    hours: list[Row] = field(default_factory=list)
    """The latest hour of every plug, the hottest first."""
    uses: Counter[Plug] = field(default_factory=Counter)

    def take(self, rows: pa.Table) -> None:
        """Look at the rows of a batch."""
        self.rows += rows.num_rows
        hours = of_window(rows, HOUR)
        if hours.num_rows:
            end = pc.max(hours["end"])
            latest = hours.filter(pc.equal(hours["end"], end))
            self.hours = latest.sort_by([("energy", "descending")]).to_pylist()
            self.until = end.as_py()
        uses = of_window(rows, USE)
        self.uses.update(zip(uses["house"].to_pylist(), uses["plug"].to_pylist(), strict=True))


def of_window(rows: pa.Table, label: str) -> pa.Table:
    """The rows of one window."""
    return rows.filter(pc.equal(rows["window"].cast(pa.string()), label))


@dataclass(frozen=True)
class Outcome:
    """What has become of the stream."""

    readings: int
    late: int
    rows: pa.Table
    seconds: float


def run(spark: Any, feed: Feed, folder: Path, show: Callable[[Seen, Feed], None]) -> Outcome:
    """Send the feed, answer it, and give all rows.

    `folder` gets the readings, the rows and a checkpoint, in folders of these names.
    """
    seen = Seen()
    (folder / "rows").mkdir()

    def sink(rows: pa.Table, batch: int) -> None:
        pq.write_table(rows, folder / "rows" / f"{batch:06}.parquet")
        seen.take(rows)
        show(seen, feed)

    feed.send()
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", FILES_PER_BATCH)
    job = LIVE.write_stream(files.parquet(str(folder / "readings")), sink, folder / "checkpoint")
    try:
        # The first batch takes long: Spark and the workers compile. Only then it goes live.
        job.processAllAvailable()
        begun = time.monotonic()
        feed.start()
        while feed.is_alive() and job.isActive:
            feed.join(0.2)
        job.processAllAvailable()  # raises what has ended the job, if it has ended
    finally:
        feed.stop()
        job.stop()
    return Outcome(
        feed.sent,
        progress(folder / "checkpoint").late,
        ds.dataset(folder / "rows").to_table(),
        time.monotonic() - begun,
    )
