"""A process that starts nodes by forking: real processes to kill, in milliseconds.

Starting Python and importing everything takes seconds, too long for tests that kill a hundred
nodes. This process has done that once.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from pyspark import cloudpickle

ROOT = Path(__file__).parents[3]


class Zygote:
    """Starts processes, and tells how they ended."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.edge.running.zygote"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lock = Lock()

    def start(self, job: Any, log: Path) -> int:
        """Run a job, an object that can be called, in a new process; returns its id."""
        pid = self._ask("start", cloudpickle.dumps(job), str(log))
        assert isinstance(pid, int)
        return pid

    def exit_code(self, pid: int) -> int | None:
        """How a process ended (negative: by which signal), or None while it runs."""
        code = self._ask("poll", pid)
        assert code is None or isinstance(code, int)
        return code

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, *question: object) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
            answer: object = pickle.load(self._process.stdout)
            return answer


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    codes: dict[int, int | None] = {}
    while True:
        try:
            question = pickle.load(questions)
        except EOFError:  # the tests have ended, or were killed
            for pid, code in codes.items():
                if code is None:
                    os.kill(pid, signal.SIGKILL)
            return
        match question:
            case ("start", job, log):
                pid = os.fork()
                if pid == 0:
                    _run(job, log)
                codes[pid] = None
                pickle.dump(pid, answers)
            case ("poll", pid):
                if codes[pid] is None:
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    codes[pid] = os.waitstatus_to_exitcode(status) if ended else None
                pickle.dump(codes[pid], answers)
        answers.flush()


def _run(job: bytes, log: str) -> None:
    """In the new process: run a job, never to return."""
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((0, null), (1, out), (2, out)):
            os.dup2(target, number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(n, m), write_through=True) for n, m in enumerate("rww")
        )
        code = pickle.loads(job)() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    from tests.edge.running.real_trees import warm_up

    talk = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get into the answers
    warm_up()
    _serve(sys.stdin.buffer, talk)
