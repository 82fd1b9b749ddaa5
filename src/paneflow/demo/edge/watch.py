"""Looks at the running tree: asks the root, as `paneflow node top` does, and shows the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from paneflow.demo.edge.processes import Processes
from paneflow.demo.edge.screen import Show
from paneflow.engines.edge.watching.picture import NodeLine
from paneflow.engines.edge.watching.status import StatusError, ask_status
from paneflow.errors import PaneflowError

TICK = 0.25
"""Seconds between two looks."""
LONGEST = 90.0
"""Seconds after which a tree that does not come to what is waited for is taken to hang."""


class Watch:
    """What the tree looks like, as far as the root knows.

    Args:
        status: Where the root tells it.
        nodes: The processes; one that ends by itself is an error.
        show: Shows it.
    """

    def __init__(self, status: str, nodes: Processes, show: Show) -> None:
        self.tree: Sequence[NodeLine] = ()
        self.happens = "the nodes start"
        self._status = status
        self._nodes = nodes
        self._show = show

    @property
    def alive(self) -> int:
        """How many nodes have been heard of lately."""
        return sum(line.alive for line in self.tree)

    def look(self) -> None:
        """Ask and show."""
        self._nodes.check()
        try:
            self.tree = ask_status(self._status, patience=1.0)
        except StatusError:
            return  # the root has not started yet, or is busy: look again later
        self._show(self.tree, self.happens)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Look again and again until a condition holds."""
        end = time.monotonic() + LONGEST
        while not condition():
            if time.monotonic() > end:
                raise PaneflowError(
                    f"the tree hangs ({self.happens}): see the logs in the folder of the demo"
                )
            time.sleep(TICK)
            self.look()
