"""Whether a stream's threads are in this process: they stay behind when it is forked."""

from __future__ import annotations

import os


class Forks:
    """How often the process has been forked on the way here: cheaper to ask for than its number."""

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1


forks = Forks()
