"""The inputs of a child, as its loop sees them: what has arrived, and who has fallen silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paneflow.engines.edge.inputs.contract import Arrived, Input
from paneflow.engines.edge.records import Cut, Ended
from paneflow.engines.edge.running.cuts import Cutter


class Intake:
    """All inputs of a child, read in turns.

    Args:
        inputs: The inputs.
        cutter: Makes records of what arrives.
        positions: The last position of each source that is in the log.
        idle: After how many seconds without events a source counts as silent; None: never.
        now: The time, by a clock that only goes forward.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        cutter: Cutter,
        positions: Mapping[str, int],
        idle: float | None,
        now: float,
    ) -> None:
        self._inputs = inputs
        self._cutter = cutter
        self._idle = idle
        self._heard = dict.fromkeys(positions, now)
        self._unsettled: dict[str, int] = {}
        for one in inputs:
            one.start(positions)

    @property
    def refused(self) -> int:
        """Messages, or the batches in them, that were refused."""
        return self._cutter.refused + sum(one.refused for one in self._inputs)

    @property
    def finished(self) -> bool:
        """Whether nothing more can come from any input."""
        return all(one.finished for one in self._inputs)

    def records(self, most: int, now: float) -> Iterator[Cut | Ended]:
        """Records of what has arrived, at most that many parts of each input."""
        return self._cutter.records(self._read(most, now))

    def silent(self, now: float) -> list[str]:
        """Sources that have just become silent."""
        if self._idle is None:
            return []
        found = [source for source, when in self._heard.items() if now - when >= self._idle]
        for source in found:
            del self._heard[source]
        return found

    def excuse(self, seconds: float) -> None:
        """Nothing was read meanwhile: that is not held against the sources."""
        self._heard = {source: when + seconds for source, when in self._heard.items()}

    def settle(self) -> None:
        """All that was read is in the log."""
        if self._unsettled:
            for one in self._inputs:
                one.settle(self._unsettled)
            self._unsettled = {}

    def waits_on(self) -> list[Any]:
        """What to wait for, so that `records` is called in time."""
        return [end for one in self._inputs for end in one.waits_on()]

    def pause(self, now: float) -> float | None:
        """Seconds after which there may be something to do although nothing has arrived."""
        pauses = [pause for one in self._inputs if (pause := one.pause()) is not None]
        if self._heard and self._idle is not None:
            pauses.append(max(min(self._heard.values()) + self._idle - now, 0.0))
        return min(pauses, default=None)

    def close(self) -> None:
        """Close all inputs."""
        for one in self._inputs:
            one.close()

    def _read(self, most: int, now: float) -> Iterator[Arrived]:
        for one in self._inputs:
            for arrived in one.read(most):
                if arrived.ended:
                    self._heard.pop(arrived.source, None)
                else:
                    self._heard[arrived.source] = now
                self._unsettled[arrived.source] = arrived.position
                yield arrived
