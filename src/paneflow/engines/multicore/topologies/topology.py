"""What all topologies share: how PUs are made, fed and stopped."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.contract import Batch, Pauses
from paneflow.engines.multicore.threads.crewed import Crewed
from paneflow.engines.multicore.threads.unit import Crew, Room
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.messages import Arrivals, Work
from paneflow.engines.multicore.topologies.parts.question import Question, refusal
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import UnsupportedError

if TYPE_CHECKING:
    from paneflow.query import Query


def under_way(workers: int) -> int:
    """How many messages may be under way to each PU: the queue size of the thesis, in batches.

    In a ring, a PU cannot process a message until up to P - 1 others have followed it. To let them
    follow, half of the messages under way must be more than that.
    """
    return tuning.under_way + 2 * workers


class Topology(Crewed):
    """PUs in a line or a ring."""

    prompt: ClassVar[bool] = True
    """Whether the windows that a batch ends are emitted without waiting for a watermark."""
    most_windows: ClassVar[int] = 1 << 20
    """How many windows an event or a pane may belong to; each of them is updated separately."""

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return refusal(query, kinds, cls.most_windows)

    def __init__(
        self, query: Query, kinds: Kinds, workers: int, pauses: Pauses | None = None
    ) -> None:
        why = self.refuses(query, kinds)
        if why is not None:
            raise UnsupportedError(f"strategy {self.name!r} refuses the query: {why}")
        self._question = Question(query, kinds)
        self._arrivals = Arrivals(self._question, self.prompt)
        # Build kernels once, here, rather than in several PUs that would wait for each other.
        Cells(self._question).warm()
        self._crew = Crew(self.name)
        self._wire(workers, pauses)
        self._room = Room(self._crew, under_way(workers))
        self._settled = False
        self._start()

    @abstractmethod
    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        """Make the PUs and the rings between them."""

    @abstractmethod
    def _send(self, work: Work) -> None:
        """Hand a message to the PUs once there is room for it."""

    def feed(self, batch: Batch) -> None:
        self._check_open()
        if len(batch):
            arrivals = self._arrivals
            work = arrivals.stragglers(batch) if batch.behind else arrivals.batch(batch)
            self._deliver(work)

    def advance(self, watermark: int) -> None:
        self._check_open()
        work = self._arrivals.watermark(watermark)
        if work is not None:
            self._deliver(work)

    def due(self, limit: int) -> bool:
        return self._arrivals.due(limit)

    @property
    def idle(self) -> bool:
        return self._room.idle

    @property
    def brief(self) -> bool:
        return self._crew.lends and self._crew.asleep

    def finish(self) -> None:
        self._check_open()
        self._deliver(self._arrivals.end())
        self._await_end()

    def _deliver(self, work: Work) -> None:
        """Send a message, and do the work of PUs that are left asleep."""
        self._crew.weigh()
        self._send(work)
        self._crew.help()

    def _settle(self) -> None:
        """Send what PUs still need in order to process everything they were sent."""

    def _check_open(self) -> None:
        if self._crew.failure is not None and not self._settled:
            self._settled = True
            self._settle()
        super()._check_open()
