"""Whether the threads of a stream are in this process: a forked child does not have them."""

from __future__ import annotations

import os


class Forks:
    """Counts how many forks led to this process: cheaper to read than its process id."""

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1


forks = Forks()
