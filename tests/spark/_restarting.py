"""A driver that starts a stream again and again, without stopping it; another one may do so, too.

    python -m tests.spark._restarting FOLDER STARTS SEED

The files of `FOLDER/in` go to `FOLDER/rows`. Runs that another one has overtaken fail; any other
failure ends the driver.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import paneflow as pf
from paneflow.spark import session
from tests.spark.support import read_files

OVERTAKEN = (
    "another run",
    "CONCURRENT_STREAM_LOG_UPDATE",
    "CONCURRENT_QUERY",
    "Multiple streaming",
)
"""What a run says that another one has overtaken, by paneflow's commits or by Spark's log."""


def check(running: Any) -> None:
    """Refuse any end of a run but being overtaken."""
    ended = None if running.isActive else running.exception()
    if ended is not None and not any(reason in str(ended) for reason in OVERTAKEN):
        raise ended


def main(folder: Path, query: pf.Query, schema: Any, starts: int, seed: int) -> None:
    """Start the stream so often."""
    spark = session("paneflow-restarting", "local[2]", **{"spark.driver.memory": "1g"})
    frame = read_files(spark, folder / "in", schema)
    r, runs = random.Random(seed), []
    (folder / f"ready-{seed}").touch()
    while len(list(folder.glob("ready-*"))) < 2:
        time.sleep(0.01)
    for _ in range(starts):
        try:
            runs.append(query.write_stream(frame, folder / "rows", folder / "c"))
        except Exception as error:
            if not any(reason in str(error) for reason in OVERTAKEN):
                raise
        time.sleep(r.uniform(0, 1.5))
    for running in runs:
        check(running)
        running.stop()
    print(f"{len(runs)} runs, {sum(run.exception() is not None for run in runs)} overtaken")


if __name__ == "__main__":
    from tests.spark.test_restart import QUERIES, SCHEMA

    main(Path(sys.argv[1]), QUERIES["slices"], SCHEMA, int(sys.argv[2]), int(sys.argv[3]))
