"""The nodes as processes: started, killed, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from paneflow.demo.edge.layout import NODES
from paneflow.errors import PaneflowError

LONGEST = 60.0
"""Seconds in which a node ends that is asked to."""


class Processes:
    """All nodes of the tree whose file is in a folder. The end of `with` kills what still runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        """Start nodes. What they log is in files named after them."""
        for name in names:
            with self.log_of(name).open("ab") as log:
                self._running[name] = subprocess.Popen(
                    [sys.executable, "-m", "paneflow.demo.edge.node", name],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def log_of(self, name: str) -> Path:
        """Where a node logs."""
        return self._folder / f"{name}.log"

    def kill(self, name: str) -> int:
        """Kill a node with SIGKILL, as a loss of power would; returns its process id."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        return process.pid

    def leave(self) -> None:
        """Let all nodes report what they have, and end; each waits for those below it."""
        for process in self._running.values():
            os.kill(process.pid, signal.SIGUSR1)
        for name in reversed(NODES):
            try:
                code = self._running[name].wait(LONGEST)
            except subprocess.TimeoutExpired:
                raise PaneflowError(
                    f"node {name!r} does not end: see {self.log_of(name)}"
                ) from None
            if code:
                raise PaneflowError(f"node {name!r} has failed: see {self.log_of(name)}")

    def check(self) -> None:
        """Raise an error if a node has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise PaneflowError(f"node {name!r} has failed: see {self.log_of(name)}")

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
            process.wait()
