"""How each window of a query is answered by a tree, and why.

Follows the two decisions of "Disco", whether windows and whether aggregates can be computed on
several nodes: time windows and sessions always can; what depends on the order of all events only
if the query says what its windows mean on several streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.engines.edge.counted import LEAST_SPACING, is_counted, spacing
from paneflow.engines.edge.summarised import has_quantiles
from paneflow.errors import QueryError
from paneflow.slicing.layout import not_sliceable
from paneflow.windows import Count, Custom, Punctuation, Session, Sliding, Window, tumbling

if TYPE_CHECKING:
    from paneflow.query import Query

SLICES = "slices"
EVENTS = "events"
QUANTILES = "quantiles"
COUNTED = "counted"
LOCAL = "local"
ORDER = "order"
BOUNDS = "bounds"
GAPS = "gaps"
INTERPRETATIONS = ("auto", LOCAL, ORDER, BOUNDS, GAPS)
MEANINGS = {
    LOCAL: "each child node answers for its own events",
    ORDER: "the n-th windows of a key on all child nodes are one",
    BOUNDS: "windows that are marked at the same time on all child nodes are one",
    GAPS: "windows that overlap in time are one",
}


@dataclass(frozen=True)
class Way:
    """How a window is answered, and the reason in a sentence."""

    name: str
    reason: str


def ways_of(query: Query, source: pa.Schema, asked: Mapping[str, str]) -> dict[str, Way]:
    """The way of every window; what was asked for is checked."""
    unknown = [label for label in asked if label not in query.windows]
    if unknown:
        raise QueryError(
            f"{unknown[0]!r} is given an interpretation, but the query has no such window: it has "
            f"{', '.join(map(repr, query.windows))}"
        )
    ways = {
        label: _asked(label, window, asked[label])
        if asked.get(label, "auto") != "auto"
        else _chosen(query, label, window, source)
        for label, window in query.windows.items()
    }
    if any(way.name == EVENTS for way in ways.values()):
        sent = Way(EVENTS, "events are sent for another window anyway")
        ways = {label: sent if way.name == COUNTED else way for label, way in ways.items()}
    return ways


def _chosen(query: Query, label: str, window: Window, source: pa.Schema) -> Way:
    if isinstance(window, Count) and is_counted(query) and spacing([window]) >= LEAST_SPACING:
        cells = query.with_windows({label: tumbling(1)})
        if not_sliceable(cells, source) is None:
            return Way(
                COUNTED,
                "events are counted in short stretches of time, and the root asks for those in "
                "which a window begins or ends",
            )
    if not isinstance(window, Sliding | Session):
        return Way(
            EVENTS,
            f"{window} depends on the order of all events, so they are sent and put in order at "
            f"the root; an interpretation ({', '.join(MEANINGS)}) would keep them on their nodes",
        )
    reason = not_sliceable(query.with_windows({label: window}), source)
    if reason is not None:
        return Way(EVENTS, f"events are sent, because {reason}")
    if isinstance(window, Session):
        return Way(SLICES, "sessions of different nodes are one where their gaps overlap")
    if has_quantiles(query):
        return Way(
            QUANTILES,
            "large slices are sent as summaries, and the root asks for the values that a quantile "
            "can be among",
        )
    return Way(SLICES, "its bounds are the same on every node, so slices are merged on the way")


def _asked(label: str, window: Window, asked: str) -> Way:
    if asked not in INTERPRETATIONS:
        raise QueryError(
            f"interpretation {asked!r} of window {label!r} is not known: choose one of "
            f"{', '.join(map(repr, INTERPRETATIONS))}"
        )
    if asked == LOCAL:
        return Way(asked, MEANINGS[asked])
    why = _refusal(window, asked)
    if why is not None:
        raise QueryError(
            f"window {label!r} ({window}) cannot have the interpretation {asked!r}: {why}; "
            f"choose 'auto', or 'local'"
        )
    return Way(asked, MEANINGS[asked])


def _refusal(window: Window, asked: str) -> str | None:
    """Why windows of a kind cannot be read so; None if they can."""
    if isinstance(window, Sliding | Session):
        return "windows of time are the same on every node already"
    if asked == BOUNDS and not isinstance(window, Punctuation):
        return "only punctuation marks can be the same on every node"
    each_once = isinstance(window, Punctuation) or (
        isinstance(window, Count) and window.slide == window.size
    )
    if asked == GAPS and not each_once:
        return "an event of a node is not in exactly one window, so overlap would say nothing"
    if asked == ORDER and isinstance(window, Custom):
        return "windows of a rule have no number that nodes agree on"
    return None
