"""Spark for paneflow: a session with everything set, and what streams tell.

`query.over(df)` and `query.write_stream(df, ...)` work in any session that has what they need;
the one of `session()` has. `progress` tells how far a stream of `write_stream` has come, `split`
parts the rows of `query.over(df, late=True)` from events that came too late.
"""

from paneflow.engines.spark.commits import Progress, progress
from paneflow.engines.spark.session import session
from paneflow.engines.spark.streaming import split

__all__ = ["Progress", "progress", "session", "split"]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
