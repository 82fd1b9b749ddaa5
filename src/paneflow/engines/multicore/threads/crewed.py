"""A strategy whose PUs are a crew of threads: how they start and end."""

from __future__ import annotations

import weakref

from paneflow.engines.multicore.contract import Rows, Strategy, UnitMetrics, stopped
from paneflow.engines.multicore.threads.unit import Crew


class Crewed(Strategy):
    """What topologies and worker models share."""

    _crew: Crew

    def _start(self) -> None:
        # Threads refer to the crew and not to this object, so a dropped strategy stops them.
        self._dropped = weakref.finalize(self, self._crew.stop)
        for unit in self._crew.units:
            unit.thread.start()

    def _check_open(self) -> None:
        """Raise what a PU has failed with, or that the strategy has been stopped."""
        self._crew.check()
        if self._crew.stopped:
            raise stopped(self.name)

    def check(self) -> None:
        if self._crew.failure is not None:
            self._check_open()

    def _await_end(self) -> None:
        """Return when the last row has been emitted."""
        while not self._crew.finished:
            heard = self._crew.feeder.rung
            self._check_open()
            if not self._crew.finished:
                self._crew.feeder.wait(heard)
        self.stop()

    def take(self) -> list[Rows]:
        output = self._crew.output
        return [output.popleft() for _ in range(len(output))]

    def stop(self) -> None:
        self._dropped()
        for unit in self._crew.units:
            unit.thread.join()

    def metrics(self) -> list[UnitMetrics]:
        return [unit.metrics() for unit in self._crew.units]
