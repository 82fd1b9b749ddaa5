"""How long the first answer takes: in one process, and in six that start together.

    python -m bench.cold_start [--quick]

Every case is a new process. *Cold* means that no kernel is compiled yet: their folder is empty.
*Warm* means that an earlier process has compiled them all. The small table is the README's
example, without what it prints; the large one has 100,000 events, and also needs the kernels that
sort events and find windows. *libraries* only imports what both need of others, or pyarrow imports
for them. Six warm processes show what six cold ones have to do besides compiling. Python's
bytecode is in place in all cases, as an installer leaves it. The figures are the seconds from the
start to the end of the processes, and their total processor time. The smallest of several runs
counts, because other work on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import ROOT, Sheet, publish, verdict, write

TOGETHER = 6
RUNS = 5
SECONDS, TIMES = 2.0, 1.5
"""How long the README's example may take, and how many times as long six processes may."""

LIBRARIES = "import numba, pandas, pyarrow.compute"
IMPORT = "import paneflow"
README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
SMALL = re.sub(r"(?m)^print\(.*\n", "", README)
LARGE = (
    SMALL
    + """
import numpy as np
n = 100_000
r = np.random.default_rng(1)
query.over(pa.table({"plug": r.integers(0, 50, n), "ts": r.integers(0, n, n), "load": r.random(n)}))
"""
)


@dataclass(frozen=True)
class Took:
    """Seconds until the last process was done, and the processor time of all."""

    seconds: float
    processor: float


def installed(bytecode: Path) -> dict[str, str]:
    """The variables of processes that find their bytecode in a folder, or leave it there."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def run(script: str, environment: dict[str, str], cache: Path, processes: int = 1) -> Took:
    """Start processes together and wait for all of them."""
    environment = environment | {"PANEFLOW_CACHE": str(cache)}
    start, before = time.perf_counter(), _children()
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
        for _ in range(processes)
    ]
    ended = [process.wait() for process in started]
    if any(ended):
        raise SystemExit(f"a process failed: {script}")
    return Took(time.perf_counter() - start, _children() - before)


def cold(script: str, environment: dict[str, str], processes: int = 1) -> Took:
    """With an empty folder for kernels."""
    with tempfile.TemporaryDirectory() as folder:
        return run(script, environment, Path(folder), processes)


def warm(script: str, environment: dict[str, str], processes: int = 1) -> Took:
    """After another process has compiled everything."""
    with tempfile.TemporaryDirectory() as folder:
        run(script, environment, Path(folder))
        return run(script, environment, Path(folder), processes)


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def measure(runs: int) -> dict[str, Took]:
    """The smallest time of several runs of every case, in turns."""
    several: dict[str, list[Took]] = {}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = installed(Path(bytecode))
        for script in (LIBRARIES, IMPORT, SMALL, LARGE):
            cold(script, environment)
        for _ in range(runs):
            cases = {"libraries": warm(LIBRARIES, environment), "import": warm(IMPORT, environment)}
            for name, script in (("small", SMALL), ("large", LARGE)):
                cases[f"{name}, warm"] = warm(script, environment)
                cases[f"{name}, {TOGETHER} warm"] = warm(script, environment, TOGETHER)
                cases[f"{name}, cold"] = cold(script, environment)
                cases[f"{name}, {TOGETHER} cold"] = cold(script, environment, TOGETHER)
            for name, took in cases.items():
                several.setdefault(name, []).append(took)
    return {
        name: Took(min(t.seconds for t in took), min(t.processor for t in took))
        for name, took in several.items()
    }


def _times(figures: dict[str, Took], name: str) -> str:
    """How much longer several processes take than one that is cold."""
    size, _, case = name.partition(", ")
    if not case.startswith(f"{TOGETHER} "):
        return ""
    return f"{figures[name].seconds / figures[f'{size}, cold'].seconds:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run; leave the docs as they are")
    options = parser.parse_args(arguments)
    figures = measure(1 if options.quick else RUNS)
    sheet = Sheet(
        "From the start of a process to its end",
        ("contestant", "s", "times one cold", "processor, s"),
        [
            [
                [name, f"{t.seconds:.2f}", _times(figures, name), f"{t.processor:.2f}"]
                for name, t in figures.items()
            ]
        ],
    )
    sheet.show()
    one = figures["small, cold"].seconds
    verdict(one <= SECONDS, f"the README's example takes {one:.1f} s cold ({SECONDS})")
    for size in ("small", "large"):
        times = figures[f"{size}, {TOGETHER} cold"].seconds / figures[f"{size}, cold"].seconds
        verdict(times <= TIMES, f"{size}: {TOGETHER} together take {times:.1f} of one ({TIMES})")
    write("cold-start", {name: asdict(took) for name, took in figures.items()})
    if not options.quick:
        publish("cold-start", [sheet])


if __name__ == "__main__":
    main()
