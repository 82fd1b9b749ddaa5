"""Events behind the watermark: whether a window is still open for them, and when they join it.

A *straggler* is an event behind the watermark that has an open window: a time window that ends
after the watermark, or a session that is open at it. Windows defined by positions, marks or growing
values are never open for it, because positions before the watermark are final. An event behind the
watermark without an open window is late.

Which windows are open for an event depends on the watermark when it arrived, its *limit*, and many
events arrive between two steps of a stream. So the final events of a step are cut: a group of
stragglers is fed once everything before some watermark has been fed and the windows that end by it
have been emitted. One watermark serves a whole group if, for each of them, no window that it could
join ends between that watermark and its limit. Groups are few, unless windows end all the time. If
all windows that matter are by time, a group is fed as late as this allows, after further final
events.

Whether a session is open follows from the events of its key, so sessions are tracked here: for each
key its last session, and when the one before it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import pasted
from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

FIRST, LAST, ENDED = range(3)
"""The first and the last time of a key's last session; the last time of the session before it."""
IN_NO_WINDOW, LATE = -1, -2
"""In place of a group: the event lies between windows and is in none, or it is late."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which stragglers are fed together, and when."""

    of: Array
    """For each event behind the watermark the number of its group, `IN_NO_WINDOW` or `LATE`."""
    cuts: Array
    """For each group, how many final events are fed before its watermark."""
    feeds: Array
    """For each group, how many final events are fed before it."""
    watermarks: Array
    """For each group the watermark that precedes it; `BEFORE_ALL` if the last one serves it too."""

    @property
    def late(self) -> Array:
        """Which events find none of their windows open."""
        late: Array = self.of == LATE
        return late


class Stragglers:
    """Tells which events behind the watermark have an open window."""

    def __init__(self, query: Query, single: bool) -> None:
        """`single`: with one source, events at the watermark itself are final too."""
        windows = query.windows.values()
        spans = [
            (w.range.value, w.slide.value, w.offset.value)
            for w in windows
            if isinstance(w, Sliding)
        ]
        self._spans = np.array(spans, np.int64).reshape(-1, 3)
        self._gaps = np.array([w.gap.value for w in windows if isinstance(w, Session)], np.int64)
        self._by_position = not all(isinstance(w, Sliding | Session) for w in windows)
        self._single = single
        self._sessions = np.full((len(self._gaps), 3, 0), BEFORE_ALL)

    @property
    def possible(self) -> bool:
        """Whether an event behind the watermark can have an open window at all."""
        return len(self._spans) + len(self._gaps) > 0

    def note(self, key: Array, t: Array) -> None:
        """Track the sessions of final events."""
        if len(self._gaps):
            self._make_room(key)
            _watch(len(key) * len(self._gaps), key, t, 0, len(t), self._gaps, self._sessions)

    def grouped(
        self, key: Array, t: Array, limit: Array, final: tuple[Array, Array], settled: int
    ) -> Groups:
        """Group the events behind the watermark, given in the order of arrival.

        `final` are keys and times of the events that the step makes final, `settled` is the
        watermark before it.
        """
        self._make_room(key)
        self._make_room(final[0])
        of = np.empty(len(t), np.int64)
        cuts, feeds, watermarks = (np.empty(len(t), np.int64) for _ in range(3))
        groups = _sort_out(
            len(t) + len(final[0]),
            (key, t, limit),
            (*final, self._single),
            settled,
            (self._spans, self._gaps, self._by_position),
            self._sessions,
            of,
            (cuts, feeds, watermarks),
        )
        return Groups(of, cuts[:groups], feeds[:groups], watermarks[:groups])

    def _make_room(self, key: Array) -> None:
        more = int(key.max(initial=-1)) + 1 - self._sessions.shape[2]
        if len(self._gaps) and more > 0:
            room = np.full((len(self._gaps), 3, max(more, self._sessions.shape[2])), BEFORE_ALL)
            self._sessions = np.concatenate([self._sessions, room], axis=2)


@pasted
def _follow(key, t, gaps, sessions):  # type: ignore[no-untyped-def]
    """A final event follows all others."""
    for g in range(len(gaps)):
        mine = sessions[g, :, key]
        if mine[LAST] == BEFORE_ALL or t - mine[LAST] > gaps[g]:
            mine[ENDED] = mine[LAST]
            mine[FIRST] = t
        mine[LAST] = t


@Loop
def _watch(key, t, start, end, gaps, sessions):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        _follow(key[i], t[i], gaps, sessions)


@pasted
def _next_end(t, settled, spans):  # type: ignore[no-untyped-def]
    """When the next of an event's windows ends after a watermark."""
    soonest = AFTER_ALL
    for w in range(len(spans)):
        reach, slide, offset = spans[w]
        last_end = offset + (t - offset) // slide * slide + reach
        end = offset + reach + ((max(settled, t) - offset - reach) // slide + 1) * slide
        if end <= last_end:
            soonest = min(soonest, end)
    return soonest


@Loop
def _sort_out(behind, final, settled, windows, sessions, of, made):  # type: ignore[no-untyped-def]
    """Assign events to groups; returns how many groups there are."""
    key, t, limit = behind
    final_key, final_t, single = final
    spans, gaps, by_position = windows
    cuts, feeds, watermarks = made
    fed, groups = 0, 0
    by_time = len(gaps) == 0
    soonest = AFTER_ALL
    alone = True
    for i in range(len(t)):
        now, k = limit[i], key[i]
        while fed < len(final_t) and final_t[fed] < now + single:
            _follow(final_key[fed], final_t[fed], gaps, sessions)
            fed += 1
        some, joins, between = by_position, False, settled == BEFORE_ALL
        between |= (not by_time and t[i] >= settled) or (by_time and soonest <= now)
        for w in range(len(spans)):
            reach, slide, offset = spans[w]
            last_end = offset + (t[i] - offset) // slide * slide + reach
            if last_end <= t[i]:
                continue  # in a gap between windows
            some = True
            joins |= last_end > now
            # The end of the last of this event's windows that has ended, if any has.
            ended = min(last_end, offset + reach + (now - offset - reach) // slide * slide)
            between |= ended > max(settled, t[i])
        missed = False
        for g in range(len(gaps)):
            some = True
            mine = sessions[g, :, k]
            is_open = mine[LAST] != BEFORE_ALL and mine[LAST] + gaps[g] >= now
            within = t[i] + gaps[g] >= now or (is_open and t[i] >= mine[FIRST] - gaps[g])
            joins |= within
            missed |= not within
            over = mine[ENDED] if is_open else mine[LAST]
            between |= over != BEFORE_ALL and over + gaps[g] >= settled
            between |= not within and t[i] + gaps[g] >= settled
        if not joins:
            of[i] = LATE if some else IN_NO_WINDOW
            continue
        for g in range(len(gaps)):
            mine = sessions[g, :, k]
            is_open = mine[LAST] != BEFORE_ALL and mine[LAST] + gaps[g] >= now
            if is_open and (t[i] + gaps[g] >= now or t[i] >= mine[FIRST] - gaps[g]):
                mine[FIRST] = min(mine[FIRST], t[i])
                mine[LAST] = max(mine[LAST], t[i])
            elif t[i] + gaps[g] >= now:
                mine[ENDED] = mine[LAST]
                mine[FIRST] = t[i]
                mine[LAST] = t[i]
        # An event to which a session is closed goes alone: another event in its group might seem
        # to connect it with the next session.
        if between or alone or missed:
            cuts[groups] = feeds[groups - 1] if groups else 0
            watermarks[groups] = BEFORE_ALL
            if between:
                settled = now
                soonest = AFTER_ALL
                cuts[groups] = fed
                watermarks[groups] = now
            feeds[groups] = cuts[groups]
            groups += 1
        if by_time:
            soonest = min(soonest, _next_end(t[i], settled, spans))
            feeds[groups - 1] = fed
        alone = missed
        of[i] = groups - 1
    while fed < len(final_t):
        _follow(final_key[fed], final_t[fed], gaps, sessions)
        fed += 1
    return groups
