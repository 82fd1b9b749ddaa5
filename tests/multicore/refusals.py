"""What each strategy refuses, and a part of the reason that it must give."""

from __future__ import annotations

from paneflow.engines.multicore.choosing import BY_NAME
from tests.multicore.support import HIVES, ONE_WORKER, TOPOLOGIES
from tests.properties.cases import AGGREGATES, WINDOWS

BY_NUMBER = ("tumbling", "sliding", "count")
BY_TIME = ("tumbling", "sliding")
LATER_EVENTS = ("session", "slide_by_tuple", "slide_by_time", "delta")
KEPT_WHOLE = (
    *("median", "quantile", "quantiles", "mode", "distinct", "top_k"),
    *("collect", "concat", "apply"),
)
SKETCHES = ("approx_distinct", "approx_quantile")

CUSTOM = {"threshold": "is custom"}
AWARE = dict.fromkeys(LATER_EVENTS, "is forward-context aware")
FREE = dict.fromkeys(("punctuation", "threshold"), "is forward-context free")
NOT_BY_TIME = dict.fromkeys(
    ("count", *LATER_EVENTS, "punctuation", "threshold"), "is not a time window"
)
WINDOWS_REFUSED: dict[str, dict[str, str]] = {
    **{strategy: {} for strategy in ("auto", *ONE_WORKER, "slices")},
    "active": AWARE | CUSTOM,
    "agnostic": CUSTOM,
    **dict.fromkeys(TOPOLOGIES, AWARE | FREE),
    **dict.fromkeys(HIVES, NOT_BY_TIME),
}
NOT_FIXED = dict.fromkeys(KEPT_WHOLE, "keeps every value of a window")
FOREIGN = dict.fromkeys(SKETCHES, "is a sketch of another library")
ORDERED = dict.fromkeys(("first", "last", "arg_min", "arg_max"), "depends on the order of events")
AGGREGATES_REFUSED: dict[str, dict[str, str]] = {
    **{strategy: {} for strategy in ("auto", *ONE_WORKER, "slices", "active", "agnostic")},
    **dict.fromkeys(TOPOLOGIES, NOT_FIXED | FOREIGN),
    **dict.fromkeys(HIVES, NOT_FIXED | FOREIGN | ORDERED),
    "tuple_gate_parallel": NOT_FIXED | FOREIGN,
}

REASONS = {
    *(reason for refused in WINDOWS_REFUSED.values() for reason in refused.values()),
    *(reason for refused in AGGREGATES_REFUSED.values() for reason in refused.values()),
    *("does not commute", "reads text", "runs as plain Python over times"),
}
"""All reasons: those of a kind of window or aggregate, of both together, and of some columns."""


def refusal(strategy: str, window: str, aggregate: str) -> str | None:
    """A part of the reason why a strategy refuses an aggregate in a window; None if it must not."""
    if strategy in (*TOPOLOGIES, *HIVES) and aggregate == "define_ordered" and window in BY_TIME:
        return "does not commute"
    return WINDOWS_REFUSED[strategy].get(window) or AGGREGATES_REFUSED[strategy].get(aggregate)


def served_windows(strategy: str) -> tuple[str, ...]:
    return tuple(window for window in WINDOWS if window not in WINDOWS_REFUSED[strategy])


def served_aggregates(strategy: str, windows: tuple[str, ...]) -> tuple[str, ...]:
    """The aggregates that a strategy gives in all of these windows."""
    return tuple(
        name
        for name in AGGREGATES
        if all(refusal(strategy, window, name) is None for window in windows)
    )


assert set(WINDOWS_REFUSED) == set(AGGREGATES_REFUSED) == {"auto", *BY_NAME}
