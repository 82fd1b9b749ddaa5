"""Breaks a copy of the library in one place at a time, and runs tests until one of them fails.

`python -m tests.mutations` tries every break, `python -m tests.mutations daba lease` those whose
names contain one of the words. The working tree is only read. Each break names the tests that
should notice it; if they pass, the tests of its room run before it counts as a survivor.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from paneflow.compiling.folder import VARIABLE, root
from tests.mutations.breaks import BREAKS, ROOMS, Break

HERE = Path(__file__).parent.parent.parent
PATIENCE = 240
"""Seconds after which a test is taken to hang; tests that wait for others give up sooner."""
HANGS, CRASHES = " hangs", " ends the process"
SLOW = re.findall(r"^SLOW := (.+)$", (HERE / "Makefile").read_text(), re.MULTILINE)[0]
PYTEST = (
    *(sys.executable, "-m", "pytest", "-v", "--tb=no"),
    *("-p", "no:cacheprovider", "-p", "tests.mutations.unshrunk"),
    *("-m", f"not exhaustive and not ({SLOW})"),  # as `make test` does
    *("-o", f"faulthandler_timeout={PATIENCE}", "-o", "faulthandler_exit_on_timeout=true"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a break: the test that failed, if one did, and how long that took."""

    tried: Break
    failed: str | None
    seconds: float

    @property
    def killer(self) -> str:
        """The test that failed, by its name alone."""
        return (self.failed or "").removesuffix(HANGS).removesuffix(CRASHES)

    def __str__(self) -> str:
        verdict = "survived" if self.failed is None else "killed  "
        where = self.tried.file.removeprefix("src/paneflow/")
        return f"{verdict} {self.seconds:4.0f} s  {self.tried.name} ({where}): {self.failed or '-'}"


class Copy:
    """A copy of the working tree, with compiled kernels of its own."""

    def __init__(self, folder: Path) -> None:
        self.tree, self._kernels, self._scratch = (folder / n for n in ("tree", "kernels", "tmp"))
        self._said = folder / "said"
        self._scratch.mkdir()
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        for name in subprocess.check_output(listed, cwd=HERE, text=True).split("\0"):
            if name and (HERE / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(HERE / name, self.tree / name)
        # Kernels are named after all they are made of, so every break may add its own.
        if root().is_dir():
            passing = shutil.ignore_patterns("*.lock", "*.draft")
            shutil.copytree(root(), self._kernels, ignore=passing)

    def failing(self, tests: list[str], *options: str) -> list[str]:
        """The tests that fail."""
        environment = os.environ | {
            "PYTHONPATH": str(self.tree / "src"),
            "TMPDIR": str(self._scratch),
            VARIABLE: str(self._kernels),
        }
        # A file, since whatever the tests have started may keep a pipe open.
        with open(self._said, "w") as said_to:
            process = subprocess.Popen(
                [*PYTEST, *options, *tests],
                cwd=self.tree,
                env=environment,
                stdout=said_to,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said = self._said.read_text()
        if process.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            print(f"no test is chosen by {shlex.join(tests)}")
            return []
        if process.returncode == pytest.ExitCode.OK:
            return []
        found = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if found:
            return [line.split(" ", 1)[1].split(" - ")[0] for line in found]
        begun = re.findall(r"^(\S+\.py::.*?)(?: Timeout| [A-Z]+ +\[| *$)", said, re.MULTILINE)
        if begun and "Timeout (" in said:
            return [begun[-1] + HANGS]
        if begun and process.returncode < 0:
            return [begun[-1] + CRASHES]
        raise SystemExit(f"pytest cannot run {shlex.join(tests)}:\n{said}")

    def try_out(self, broken: Break, tests: list[str]) -> Outcome:
        """Apply a break, run tests until one fails, and undo the break."""
        file = self.tree / broken.file
        whole = file.read_text()
        began = time.monotonic()
        try:
            self._write(file, broken.applied(whole))
            failed = self.failing(tests, "-x")
        finally:
            self._write(file, whole)
        return Outcome(broken, failed[0] if failed else None, time.monotonic() - began)

    @staticmethod
    def _write(file: Path, text: str) -> None:
        file.write_text(text)
        # Bytecode is found by size and second, which the two texts may share.
        for stale in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            stale.unlink()


def wider(broken: Break) -> list[str]:
    """The tests of the room that a file is in, its doctests included."""
    rooms = [room for room in ROOMS if broken.file.startswith(f"src/paneflow/{room}")]
    return [broken.file, *ROOMS[max(rooms, key=len)].split()]


def main(words: list[str]) -> int:
    """Try the breaks whose names contain one of the words; all without words."""
    chosen = [b for b in BREAKS if not words or any(word in b.name for word in words)]
    for each in chosen:
        each.applied((HERE / each.file).read_text())  # complains if the code has moved
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Copy(Path(folder))

        def tried(several: list[Break], tests: Callable[[Break], list[str]]) -> list[Outcome]:
            found = []
            for broken in several:
                found.append(copy.try_out(broken, tests(broken)))
                print(found[-1], flush=True)
            return found

        outcomes = tried(chosen, lambda broken: shlex.split(broken.tests))
        left = [o.tried for o in outcomes if o.failed is None]
        outcomes = [o for o in outcomes if o.failed] + tried(left, wider)
        # A test that fails anyway has noticed nothing.
        killers = {o.killer for o in outcomes if o.failed}
        anyway = copy.failing(sorted(killers)) if killers else []
    for each in anyway:
        print(f"fails without a break, too: {each}")
    survivors = [o.tried.name for o in outcomes if o.failed is None or o.killer in anyway]
    print(f"\n{len(outcomes)} breaks, {len(survivors)} survived: {', '.join(survivors) or 'none'}")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
