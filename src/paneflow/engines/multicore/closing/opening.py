"""The finders of a query's windows, one for each, over one log."""

from __future__ import annotations

from collections.abc import Mapping

from paneflow.engines.multicore.closing.customs import ByStep
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import (
    ByCount,
    ByDelta,
    ByPunctuation,
    BySlideByTime,
    BySlideByTuple,
    ByTime,
    Finder,
)
from paneflow.engines.multicore.closing.sessions import BySession
from paneflow.windows import (
    Count,
    Custom,
    Delta,
    Punctuation,
    Session,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)

FINDERS: dict[type[Window], type[Finder]] = {
    Sliding: ByTime,
    SlideByTime: BySlideByTime,
    Session: BySession,
    Count: ByCount,
    SlideByTuple: BySlideByTuple,
    Delta: ByDelta,
    Punctuation: ByPunctuation,
    Custom: ByStep,
}


def finders(
    windows: Mapping[str, Window], labels: Mapping[str, int], log: EventLog
) -> list[Finder]:
    """A finder for each window, in the order of their labels."""
    return [
        FINDERS[Custom if isinstance(window, Custom) else type(window)](labels[name], window, log)
        for name, window in sorted(windows.items())
    ]
