"""How many reports a node below may send: it is slowed down by acknowledging later.

A node sends only so much without an acknowledgement, so one that gets them slowly sends slowly.
What it has sent is neither lost nor sent again.
"""

from __future__ import annotations

from math import floor


class Allowance:
    """What may be acknowledged now, if so many reports a second are allowed.

    >>> allowance = Allowance(per_second=10, now=0.0)
    >>> allowance.upto(25, now=0.0), allowance.upto(25, now=1.0), allowance.upto(25, now=9.0)
    (10, 20, 25)
    """

    def __init__(self, per_second: float | None, now: float, since: int = 0) -> None:
        self._rate = per_second
        self._upto = since
        self._saved = per_second or 0.0
        self._when = now

    def upto(self, logged: int, now: float) -> int:
        """The last number that may be acknowledged, of those that are in the log."""
        if self._rate is None:
            return logged
        self._saved = min(self._saved + (now - self._when) * self._rate, max(self._rate, 1.0))
        self._when = now
        granted = min(floor(self._saved), logged - self._upto)
        self._saved -= granted
        self._upto += granted
        return self._upto

    def pause(self, logged: int) -> float | None:
        """Seconds until more may be acknowledged; None if all is."""
        if self._rate is None or logged <= self._upto:
            return None
        return max(1.0 - self._saved, 0.0) / self._rate
