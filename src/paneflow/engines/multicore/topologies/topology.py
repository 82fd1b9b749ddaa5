"""What all topologies share: PUs that run from the beginning, and how they are fed and stopped.

"The thesis" that this file and its neighbours cite is source document 000: a master's thesis on
streaming aggregation without a coordinator, with five approaches in chapters 5 to 9.
"""

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
    """How many messages each PU may have before it: the thesis' queue size, but of batches.

    In a ring a PU cannot work on a message until up to P - 1 others have followed it. So that they
    can, half of the messages under way must be more than that.
    """
    return tuning.under_way + 2 * workers


class Topology(Crewed):
    """PUs in a line or a ring."""

    prompt: ClassVar[bool] = True
    """Whether windows that a batch ends are given out without a watermark behind it."""
    most_windows: ClassVar[int] = 1 << 20
    """Windows that an event or a pane may belong to at once, each of which is updated by itself."""

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
        # Kernels are built here: once, and not by several PUs that wait for each other.
        Cells(self._question).warm()
        self._crew = Crew(self.name)
        self._wire(workers, pauses)
        self._room = Room(self._crew, under_way(workers))
        self._settled = False
        self._start()

    @abstractmethod
    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        """Make the PUs, and the rings between them."""

    @abstractmethod
    def _send(self, work: Work) -> None:
        """Deal out a message when there is room for it."""

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
        """Send a message, and work on it where PUs are left asleep."""
        self._crew.weigh()
        self._send(work)
        self._crew.help()

    def _settle(self) -> None:
        """Send what PUs need, beyond what they were sent, to work everything off."""

    def _check_open(self) -> None:
        if self._crew.failure is not None and not self._settled:
            self._settled = True
            self._settle()
        super()._check_open()
