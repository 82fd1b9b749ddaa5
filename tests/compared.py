"""How often each pair was compared with the oracle over ten events or more.

A pair is a kind of window and an aggregate (tables), or a strategy and an aggregate (streams).
Helpers that compare call `note_table` and `note_stream`. As a plugin, this prints the counts of
all tests that ran, on however many workers:

    python -m pytest -p tests.compared
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

MANY = 10
"""Events that a table needs to be counted."""
Pairs = Counter[tuple[str, str]]
BY_WINDOW: Pairs = Counter()
BY_STRATEGY: Pairs = Counter()


def note_table(query: pf.Query, events: int, expected: pa.Table) -> None:
    """A table was answered like the oracle; windows without a row count for nothing."""
    if events >= MANY:
        found = set(expected["window"].unique().to_pylist())
        kinds = {kind_of_window(w) for label, w in query.windows.items() if label in found}
        BY_WINDOW.update((kind, name) for kind in kinds for name in names(query))


def note_stream(strategy: str, query: pf.Query, events: int, expected: pa.Table) -> None:
    """A stream was answered like the oracle, by this strategy."""
    if events >= MANY and expected.num_rows:
        BY_STRATEGY.update((strategy, name) for name in names(query))


def kind_of_window(window: W.Window) -> str:
    """The function that makes such windows; all of a user's own are of one kind."""
    return "custom" if isinstance(window, W.Custom) else str(window).partition("(")[0]


def names(query: pf.Query) -> set[str]:
    return {kind_of_aggregate(aggregate) for aggregate in query.aggregates.values()}


def kind_of_aggregate(aggregate: A.Aggregate) -> str:
    """The function that makes such aggregates, and the law or option that makes a difference."""
    if aggregate.name == "define":
        return "define" if aggregate.laws.commutative else "define, ordered"
    return "sum, exact" if getattr(aggregate, "exact", False) else aggregate.name


def shown(pairs: Pairs) -> Iterable[str]:
    """One line for each aggregate, one column for each kind of window or strategy."""
    across = sorted({one for one, _ in pairs})
    yield " " * 18 + " ".join(f"{one[:12]:>12}" for one in across)
    for name in sorted({name for _, name in pairs}):
        counts = " ".join(f"{pairs[one, name] or '-':>12}" for one in across)
        yield f"{name:18}{counts}"
    yield f"{len(pairs)} pairs, {sum(pairs.values())} cases, at least {min(pairs.values())} each"


# The plugin: counts travel from the workers of xdist to where they are printed.


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["compared"] = [[*pairs.items()] for pairs in (BY_WINDOW, BY_STRATEGY)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    told = getattr(node, "workeroutput", {}).get("compared", [])
    for pairs, items in zip((BY_WINDOW, BY_STRATEGY), told, strict=False):
        pairs.update({(one, name): count for (one, name), count in items})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for title, pairs in (("windows", BY_WINDOW), ("strategies", BY_STRATEGY)):
        if pairs:
            terminalreporter.section(f"aggregates by {title}, compared over {MANY} events or more")
            for line in shown(pairs):
                terminalreporter.write_line(line)
