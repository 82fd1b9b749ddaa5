"""Spark for paneflow: a session with all the settings it needs, and what streams report.

`query.over(df)` and `query.write_stream(df, ...)` work in any session with the settings they need;
the one that `session()` makes has them. `progress` tells how far a stream of `write_stream` has
come, `observed` what a stream of `query.over` reports of a batch. `split` separates the rows of
`query.over(df, late=True)` from events that arrived too late.
"""

from paneflow.engines.spark.session import session
from paneflow.engines.spark.sinks.commits import Progress, progress
from paneflow.engines.spark.unbounded.observed import Observed, observed
from paneflow.engines.spark.unbounded.streaming import split

__all__ = ["Observed", "Progress", "observed", "progress", "session", "split"]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
