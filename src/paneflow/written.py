"""Queries as text, for TOML, JSON and the command line, and queries that Python modules hold.

How windows and aggregates are written is in `wording.py`.

>>> query = read_query({
...     "windows": {"hour": "sliding('1 hour', '1 second')"},
...     "aggregates": {"peak": "max('load')", "p99": "quantile('load', 0.99)"},
...     "key": ["house"],
...     "lateness": "10 seconds",
... })
>>> write_query(query)["windows"]
{'hour': "sliding('1h', '1s')"}
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paneflow.errors import PaneflowError, QueryError
from paneflow.query import Query
from paneflow.suggesting import suggestion
from paneflow.wording import AGGREGATES, WINDOWS, arguments_of, write_query

__all__ = ["AGGREGATES", "WINDOWS", "find_query", "query_of", "read_query", "write_query"]


def read_query(given: Mapping[str, Any]) -> Query:
    """The query that a mapping describes; its keys are the parameters of `Query`.

    `windows` is one text, a list, or a mapping of labels to texts; `aggregates` is a mapping.

    >>> read_query({"windows": "tumbling(5)", "aggregates": {"peak": "maks('v')"}})
    Traceback (most recent call last):
    ...
    paneflow.errors.QueryError: aggregate 'peak' is "maks('v')", and there is no aggregate \
'maks': did you mean 'max'?
    """
    return Query(**arguments_of(given))


def query_of(given: Any, beside: Path | None = None) -> Query:
    """A query as a file states it: in words, or as the name of one in a Python module.

    >>> query_of({"windows": "tumbling(5)", "aggregates": {"peak": "max('v')"}})
    Query(windows: tumbling(5); aggregates: peak=max(v); time: ts)
    """
    return find_query(given, beside) if isinstance(given, str) else read_query(given)


def find_query(where: str, beside: Path | None = None) -> Query:
    """The query that a Python module holds, named as in `my_module:my_query`.

    The module is imported, so this is for files of one's own. With `beside`, modules in that
    folder are found as well.
    """
    module_name, colon, name = where.partition(":")
    if not (colon and all(map(str.isidentifier, module_name.split("."))) and name.isidentifier()):
        raise QueryError(
            f"the query was given as {where!r}: name a module and a query in it, as in "
            f'"my_module:my_query"'
        )
    if beside is not None and str(beside) not in sys.path:
        sys.path.append(str(beside))
    try:
        module = importlib.import_module(module_name)
    except PaneflowError as error:
        raise QueryError(f"the query {where!r} cannot be made: {error}") from error
    except Exception as error:  # whatever the code of the module raises
        raise QueryError(
            f"the query {where!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    queries = [own for own, value in vars(module).items() if isinstance(value, Query)]
    found = getattr(module, name, None)
    if isinstance(found, Query):
        return found
    problem = f"{name!r} is {found!r}" if hasattr(module, name) else f"there is no {name!r}"
    advice = suggestion(name, queries) if queries else "make one with paneflow.Query"
    raise QueryError(f"the query is {where!r}, but in {module_name} {problem}: {advice}")
