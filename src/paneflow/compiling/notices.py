"""What is said, once in a process, about compiling: that it takes long, and that nothing is kept.

Through logging and not as warnings: a service that turns warnings into errors should not stop for
a missing folder. Without any logging set up, Python writes these lines to stderr.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

log = logging.getLogger("paneflow")

COMPILING = "paneflow is compiling kernels for this query, once on this machine ..."
SILENCE = 1.0
"""Seconds of compiling after which a process says what it is doing."""


class Notices:
    """What one process has said, and how long it has been compiling."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._depth = 0
        self._said: set[str] = set()

    def cannot_keep(self, error: Exception) -> None:
        """Kernels are not kept, and why."""
        self._say(
            "cannot keep",
            "paneflow cannot keep its compiled kernels, so every process compiles its own: %s. "
            "Name a folder that this user alone can write to in PANEFLOW_CACHE.",
            error,
        )

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Around the compilation of a kernel, or the wait for another process that compiles it."""
        if self._seconds > SILENCE:
            self._say("compiling", COMPILING)
        start = time.monotonic()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            # A kernel compiles the functions it calls: its time contains theirs.
            if not self._depth:
                self._seconds += time.monotonic() - start

    def _say(self, what: str, message: str, *arguments: object) -> None:
        if what not in self._said:
            self._said.add(what)
            log.warning(message, *arguments)


notices = Notices()
