"""What every kind of thing that travels must do at a node.

A child node hands its own events' slices to the same parts that a merging node hands the reports
of its children to: a child is a merging node with a single child, itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import pyarrow as pa

Tables = Mapping[str, pa.Table]
"""Tables of a report, by the names that `Question.schemas` lists."""


class Part(Protocol):
    """Holds what has come from the nodes below until a watermark says that it may go on."""

    def take(self, child: str, tables: Tables) -> None:
        """Take what a node below has reported."""
        ...

    def due(self, before: int, watermark: int) -> bool:
        """Whether there is something to say, now that the watermark has moved."""
        ...

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        """What is complete at a watermark, in the order of the nodes' names; it is held no more.

        `waited` are the nodes below that have not ended and are waited for.
        """
        ...

    def give_up(self, child: str, lost: bool) -> None:
        """Wait for a node no more, or wait for it again."""
        ...

    def state(self) -> dict[str, pa.Table]:
        """All that is held, for a snapshot."""
        ...

    def restore(self, state: Tables) -> None:
        """Take up what `state` gave."""
        ...
