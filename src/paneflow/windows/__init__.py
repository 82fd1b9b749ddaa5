"""What a window is: one small frozen class per kind, and a function that makes it.

==========================================  =====  ==============================================
constructor                                 class  a window holds
==========================================  =====  ==============================================
`tumbling(range, offset=0)`                 CF     a stretch of time; the next begins at its end
`sliding(range, slide, offset=0)`           CF     a stretch of time; one begins every `slide`
`count(size, slide=size)`                   CF     `size` events; one begins every `slide` events
`session(gap)`                              FCA    events that follow each other within `gap`
`slide_by_tuple(range, every)`              FCA    the last `range`, at every `every`-th event
`slide_by_time(size, slide, offset=0)`      FCA    the last `size` events, at every `slide`
`delta(column, range, slide)`               FCA    the last `range` of a growing column
`punctuation(column)`                       FCF    events up to and including a marked one
a subclass of `Custom`                      any    what its `step` says, event by event
==========================================  =====  ==============================================

CF is context free (bounds known from the definition), FCF forward-context free (known once the
past is known), FCA forward-context aware (needs later events).

>>> from paneflow import windows as W
>>> [str(w) for w in (W.tumbling("5 s"), W.sliding("1 hour", "1 second"), W.session("5 minutes"))]
['tumbling(5s)', 'sliding(1h, 1s)', 'session(5m)']
"""

from paneflow.windows.count import Count, count
from paneflow.windows.custom import Custom
from paneflow.windows.delta import Delta, delta
from paneflow.windows.duration import Duration, DurationLike, duration
from paneflow.windows.punctuation import Punctuation, punctuation
from paneflow.windows.session import Session, session
from paneflow.windows.slide_by_time import SlideByTime, slide_by_time
from paneflow.windows.slide_by_tuple import SlideByTuple, slide_by_tuple
from paneflow.windows.sliding import Sliding, sliding, tumbling
from paneflow.windows.window import (
    CLOSE_AFTER,
    CLOSE_BEFORE,
    KEEP,
    OPEN,
    Mark,
    Window,
    WindowClass,
)

__all__ = [
    "CLOSE_AFTER",
    "CLOSE_BEFORE",
    "KEEP",
    "OPEN",
    "Count",
    "Custom",
    "Delta",
    "Duration",
    "DurationLike",
    "Mark",
    "Punctuation",
    "Session",
    "SlideByTime",
    "SlideByTuple",
    "Sliding",
    "Window",
    "WindowClass",
    "count",
    "delta",
    "duration",
    "punctuation",
    "session",
    "slide_by_time",
    "slide_by_tuple",
    "sliding",
    "tumbling",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
