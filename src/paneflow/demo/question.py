"""What the demo asks: of the stream, and of a sample to compare with Spark's `window()`."""

from __future__ import annotations

import paneflow as pf
from paneflow import aggregates as A, windows as W

KEY = ("house", "plug")
HOUR, USE, PACKET = "hour", "use", "500 readings"

LIVE = pf.Query(
    windows={
        HOUR: W.sliding("1 hour", "1 second"),
        USE: W.session("5 minutes"),
        PACKET: W.count(500),
    },
    aggregates={
        "energy": A.sum("work"),
        "mean": A.mean("load"),
        "peak": A.max("load"),
        "peak_at": A.arg_max("ts", by="load"),
        "readings": A.count(),
    },
    key=KEY,
    time="ts",
    lateness="2 minutes",
)


def sampled(span: str) -> pf.Query:
    """What is asked of Spark's `window()` as well: a span that slides by a second."""
    return pf.Query(
        windows=W.sliding(span, "1 second"),
        aggregates={"peak": A.max("load"), "readings": A.count()},
        key=KEY,
        time="ts",
    )
