"""Spark for paneflow: a session with everything set.

`query.over(df)` and `query.write_stream(df, ...)` work in any session that has what they need;
this one has.
"""

from paneflow.engines.spark.session import session

__all__ = ["session"]
