"""Compiled kernels: kept in one folder where there is one, and never used when out of date."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import itertools
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pytest
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.compiling import compiled, folder as folder_module, helper, kernel, turns
from paneflow.compiling.identity import identity
from paneflow.compiling.notices import COMPILING, Notices

ROOT = Path(__file__).resolve().parents[1]
README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
QUIET = re.sub(r"(?m)^print\(.*\n", "", README)
ANSWER = QUIET + "\nimport json, sys\njson.dump(rows.to_pylist(), sys.stdout)\n"
UNKNOWN = 54321


def environment(**given: str) -> dict[str, str]:
    """The variables of a process that nothing is known of but what is given."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT / "src")} | given


def readme_rows() -> list[dict[str, Any]]:
    space: dict[str, Any] = {}
    exec(QUIET, space)
    rows: list[dict[str, Any]] = space["rows"].to_pylist()
    return rows


# Where nothing can be written.


AS_UNKNOWN = ["unshare", "--user", f"--map-user={UNKNOWN}"]
"""Runs a command as a user that the machine does not know."""


def may_be_unknown() -> bool:
    if shutil.which("unshare") is None:
        return False
    asked = [*AS_UNKNOWN, "id", "-u"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() == str(UNKNOWN)


@pytest.mark.skipif(not may_be_unknown(), reason="nobody may run a process as an unknown user")
@pytest.mark.processes
@pytest.mark.parametrize("home", ["none", "missing"])
def test_an_unknown_user_without_a_home_in_a_read_only_container(home: str, tmp_path: Path) -> None:
    container = tmp_path / "container"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", container / "src", ignore=ignored)
    (container / "temporary").mkdir()
    before = sorted(container.rglob("*"))
    for path in [*before, container]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    (container / "temporary").chmod(0o777)
    given = {"PYTHONPATH": str(container / "src"), "TMPDIR": str(container / "temporary")}
    if home == "missing":
        given["HOME"] = str(container / "nobody")
    done = subprocess.run(
        [*AS_UNKNOWN, sys.executable, "-W", "error", "-c", ANSWER],
        env=environment(**given),
        cwd=container,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == readme_rows()
        assert done.stderr.count("cannot keep its compiled kernels") == 1
        assert sorted(container.rglob("*")) == before
    finally:
        for path in [container, *before]:
            path.chmod(0o755)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder for kernels, for this process."""
    monkeypatch.setenv("PANEFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel, "notices", Notices())
    monkeypatch.setattr(folder_module, "notices", Notices())
    monkeypatch.setattr(kernel.Kept, "full", False)
    monkeypatch.setattr(kernel, "folder", folder_module.folder.__wrapped__)
    return tmp_path / "cache"


def doubled(x: float) -> float:
    return 2 * x


def files(cache: Path, kind: str = "*") -> list[Path]:
    return sorted(path for path in cache.rglob(kind) if path.is_file())


def compiled_anew(function: Callable[..., Any], argument: Any = 3.0) -> tuple[Any, bool]:
    """What a new process would get of a function, and whether it would compile it."""
    made = compiled(function)
    answer = made(argument)
    return answer, not made.stats.cache_hits


def test_the_folder_is_made_for_this_user_alone(cache: Path) -> None:
    assert compiled_anew(doubled) == (6.0, True)
    assert compiled_anew(doubled) == (6.0, False)
    (kept,) = files(cache)
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_not_trusted(
    mode: int, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = cache / folder_module.versions()
    place.mkdir(parents=True)
    place.chmod(mode)
    assert compiled_anew(doubled) == (6.0, True)
    assert compiled_anew(doubled) == (6.0, True)
    assert not files(cache)
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "others can write" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_kernels_of_somebody_else_are_not_run(cache: Path) -> None:
    compiled_anew(doubled)
    (kept,) = files(cache)
    os.chown(kept, UNKNOWN, UNKNOWN)
    assert compiled_anew(doubled) == (6.0, True)
    os.chown(kept.parent, UNKNOWN, UNKNOWN)
    assert compiled_anew(doubled) == (6.0, True)


def test_a_damaged_kernel_is_compiled_anew(cache: Path) -> None:
    compiled_anew(doubled)
    (kept,) = files(cache)
    whole = kept.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(damaged)
        assert compiled_anew(doubled) == (6.0, True)
    assert compiled_anew(doubled) == (6.0, False)


def test_a_full_disk_is_mentioned_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(draft: str, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert compiled_anew(doubled) == (6.0, True)
    assert compiled_anew(doubled, 3) == (6, True)
    assert not files(cache)
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text


def test_long_compiling_is_mentioned_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("paneflow.compiling.notices.SILENCE", 0.0)
    for argument in (3.0, 3, 3j):
        compiled_anew(doubled, argument)
    assert [r.getMessage() for r in caplog.records] == [COMPILING]


def test_a_function_that_cannot_be_compiled_holds_nobody_up(cache: Path) -> None:
    def refused(x: float) -> Any:
        return object.__getattribute__(x, "real")

    for _ in range(2):
        with pytest.raises(TypingError):
            compiled(refused)(3.0)
    assert not files(cache)


def test_what_another_process_has_compiled_meanwhile_is_not_compiled_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_anew(doubled)
    (kept,) = files(cache)
    away = kept.rename(cache / "away")

    @contextlib.contextmanager
    def waiting(lock: Path, done: Callable[[], bool]) -> Iterator[None]:
        assert not done()
        away.rename(kept)
        yield

    monkeypatch.setattr(kernel, "turn", waiting)
    assert compiled_anew(doubled) == (6.0, False)


# What a kernel is compiled from.

FIRST = """
from typing import NamedTuple
from paneflow.compiling import helper, lean

FACTOR = 10

class Pair(NamedTuple):
    a: int
    b: int

@helper
def deepest(x):
    return x + 1  # one

def stand_in(x):
    return x

def choose(x):
    return lambda x: x * 7
"""
SECOND = """
from first import FACTOR, Pair, deepest, stand_in
from paneflow.compiling import compiled, helper

@helper
def between(x):
    return deepest(x) * FACTOR

@compiled
def top(x):
    return between(x)

@compiled
def apart(x):
    return x

@compiled
def with_stand_in(x):
    return stand_in(x)

@compiled
def with_fields(pair):
    return pair.a - pair.b
"""


def modules(
    monkeypatch: pytest.MonkeyPatch, first: str = FIRST, second: str = SECOND
) -> ModuleType:
    """Two files, the second of which calls the first; under a name as if they were ours."""
    texts = {"paneflow.first": first, "paneflow.second": second.replace("first", "paneflow.first")}
    for name, text in texts.items():
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(text, vars(module))
    return module


@pytest.mark.parametrize(
    ("kernel", "before", "after", "changes"),
    [
        ("top", "return x + 1 ", "return x + 2 ", True),
        ("top", "FACTOR = 10", "FACTOR = 11", True),
        (
            "top",
            "@helper\ndef deepest",
            "@lean\ndef deepest",
            True,
        ),
        ("top", "# one", "# another one", False),
        ("top", "FACTOR = 10", "\n\nFACTOR = 10", False),
        ("top", "x * 7", "x * 8", False),
        ("apart", "return x + 1 ", "return x + 2 ", False),
        ("with_stand_in", "x * 7", "x * 8", True),
    ],
)
def test_a_kernel_changes_with_what_it_calls_in_other_files(
    kernel: str, before: str, after: str, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert before in FIRST
    old = identity(getattr(modules(monkeypatch), kernel))
    new = identity(getattr(modules(monkeypatch, FIRST.replace(before, after)), kernel))
    assert (old != new) is changes


def test_a_kernel_changes_with_the_order_of_fields(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = FIRST.replace("a: int\n    b: int", "b: int\n    a: int")
    for text, answer in ((FIRST, 1), (swapped, -1), (FIRST, 1)):
        module = modules(monkeypatch, text)
        assert module.with_fields(module.Pair(2, 1)) == answer
    assert len(files(cache)) == 2


def test_a_kernel_changes_with_the_file_in_which_fields_are_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept refers to the class by its module, which may since have moved."""
    for name in ("paneflow.first", "paneflow.second"):
        module = modules(monkeypatch)
        module.Pair.__module__ = name
        assert module.with_fields(module.Pair(2, 1)) == 1
    assert len(files(cache)) == 2


def test_kernels_of_one_factory_differ_by_what_they_enclose(cache: Path) -> None:
    def times(factor: float) -> Callable[[float], float]:
        def multiplied(x: float) -> float:
            return factor * x

        return multiplied

    assert compiled_anew(times(2.0)) == (6.0, True)
    assert compiled_anew(times(5.0)) == (15.0, True)
    assert compiled_anew(times(2.0)) == (6.0, False)


def test_a_kernel_changes_with_what_numba_was_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_anew(doubled)
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert compiled_anew(doubled) == (6.0, True)
    assert len(files(cache)) == 2


class Columns(NamedTuple):
    """Arrays that a kernel is given together."""

    first: Any
    second: Any


def test_arrays_that_may_only_be_read_have_no_kernel_of_their_own(cache: Path) -> None:
    @compiled
    def products(columns: Columns, factors: Any) -> Any:
        return (columns.first * columns.second * factors).sum()

    array = np.arange(3)
    kept = array.view()
    kept.flags.writeable = False
    for first, second, factors in itertools.product((array, kept), repeat=3):
        for _ in range(2):
            assert products(Columns(first, second), factors) == 9
    assert len(files(cache)) == 1


STALE = """
import second
from numba.core import event
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
print(second.top(1), len(recorder.buffer))
"""


@pytest.mark.processes
def test_no_process_goes_on_with_the_old_version_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "second.py").write_text(SECOND)
    given = {"PANEFLOW_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    given["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{tmp_path}"
    printed = []
    for text in (FIRST, FIRST.replace("x + 1 ", "x + 2 "), FIRST):
        (tmp_path / "first.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", STALE],
            env=environment(**given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(tuple(map(int, done.stdout.split())))
    (a, first), (b, second), (c, third) = printed
    assert (a, b, c) == (20, 30, 20)
    assert first > 0
    assert second > 0
    assert third == 0


def test_no_function_is_kept_by_numba_itself() -> None:
    """Numba would look for a folder when paneflow is imported, and at one file only."""
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"jit\([^)]*cache=True", path.read_text()), path


# Processes that start together.

COUNTING = (
    """
from numba.core import event
from paneflow.compiling.kernel import Kernel

class Listener(event.Listener):
    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher, Kernel):
            function = dispatcher.py_func
            compilations.append(f"{function.__module__}.{function.__qualname__}{event.data['args']}")
    def on_end(self, event):
        pass

compilations = []
event.register("numba:compile", Listener())
"""
    + QUIET
    + "\nimport json, sys\njson.dump([compilations, rows.to_pylist()], sys.stdout)\n"
)


@pytest.mark.processes
def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING],
            env=environment(PANEFLOW_CACHE=str(tmp_path / "cache")),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    answers = [json.loads(process.communicate()[0]) for process in started]
    compilations = [each for several, _ in answers for each in several]
    assert compilations
    assert len(compilations) == len(set(compilations))
    assert all(rows == readme_rows() for _, rows in answers)
    assert {path.suffix for path in files(tmp_path / "cache")} == {".kernel"}


# What a process loads that finds all kernels compiled.

LOADED = (
    QUIET + "\nimport json, sys\njson.dump([rows.to_pylist(), sorted(sys.modules)], sys.stdout)\n"
)
NEEDLESS = {
    "numba.cpython.unicode": "Numba's tables of what can be compiled",
    "numba.np.arraymath": "Numba's tables of what can be compiled",
    "paneflow.engines.live.open_windows": "streams",
    "paneflow.engines.multicore": "streams",
    "paneflow.engines.oracle": "another engine",
    "paneflow.engines.spark": "another engine",
    "paneflow.aggregates._numerics.maxent": "the solver of moment sketches",
    "matplotlib": "pictures",
    "polars": "tables of another kind",
    "pyarrow.dataset": "files",
    "pyspark": "another engine",
}


@pytest.mark.processes
def test_a_process_that_compiles_nothing_loads_no_more_than_it_uses(tmp_path: Path) -> None:
    given = environment(PANEFLOW_CACHE=str(tmp_path / "cache"))
    answers = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", LOADED], env=given, stdout=subprocess.PIPE)
        answers.append(json.loads(done.stdout))
    (rows, compiling), (same_rows, loaded) = answers
    assert rows == same_rows == readme_rows()
    assert "numba.np.arraymath" in compiling
    assert NEEDLESS.keys() & set(loaded) == set()


@pytest.mark.parametrize(("address", "refreshed"), [(1, 0), (None, 1)])
def test_numba_is_refreshed_for_names_that_nothing_has_made_known(
    address: int | None, refreshed: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_anew(doubled)
    refreshes = []
    monkeypatch.setattr(kernel.llvm, "address_of_symbol", lambda name: address)
    monkeypatch.setattr(CPUContext, "refresh", lambda context: refreshes.append(context))
    assert compiled_anew(doubled) == (6.0, False)
    assert len(refreshes) == refreshed


HOLDING = """
import importlib.util, pathlib, sys, time
spec = importlib.util.spec_from_file_location("turns", sys.argv[1])
turns = importlib.util.module_from_spec(spec)
spec.loader.exec_module(turns)
with turns.turn(pathlib.Path(sys.argv[2]), lambda: False):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """A process that holds a lock."""
    command = [sys.executable, "-c", HOLDING, turns.__file__, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.skipif(importlib.util.find_spec("fcntl") is None, reason="there are no locks")
def test_the_turn_of_a_process_that_was_killed_goes_on(tmp_path: Path, holder: Any) -> None:
    asked: list[float] = []

    def never() -> bool:
        asked.append(time.monotonic())
        if len(asked) == 3:
            holder.kill()
        return False

    with turns.turn(tmp_path / "lock", never):
        # The third look may find the lock free already, so quickly does a process end.
        assert len(asked) >= 3
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


@pytest.mark.skipif(importlib.util.find_spec("fcntl") is None, reason="there are no locks")
def test_a_lock_that_was_removed_meanwhile_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, removed = turns.fcntl.flock, []

    def too_late(handle: int, how: int) -> None:
        if not removed:
            (tmp_path / "lock").unlink()
            removed.append(handle)
        take(handle, how)

    monkeypatch.setattr(turns.fcntl, "flock", too_late)
    with turns.turn(tmp_path / "lock", lambda: False):
        assert removed
        assert (tmp_path / "lock").exists()


def test_nobody_waits_for_what_is_done(tmp_path: Path, holder: Any) -> None:
    looks = iter([False, False, True])
    with turns.turn(tmp_path / "lock", lambda: next(looks)):
        assert holder.poll() is None


def killing(holder: Any, look: int) -> Callable[[], bool]:
    """Says that a kernel is not there yet; at one look, ends the process that compiles it."""
    looks = itertools.count(1)

    def done() -> bool:
        if next(looks) == look:
            holder.kill()
        return False

    return done


def test_what_another_process_compiles_is_done_last(tmp_path: Path, holder: Any) -> None:
    worked: list[str] = []
    done = killing(holder, 2)

    def work(name: str) -> str:
        worked.append(name)
        with turns.turn(tmp_path / name, done if name == "lock" else lambda: False):
            return name.upper()

    assert turns.in_any_order(work, ["free", "lock", "free too"]) == ["FREE", "LOCK", "FREE TOO"]
    assert worked == ["free", "lock", "free too", "lock"]


def test_the_only_work_waits(tmp_path: Path, holder: Any) -> None:
    worked: list[str] = []
    done = killing(holder, 2)

    def work(name: str) -> str:
        worked.append(name)
        with turns.turn(tmp_path / name, done):
            return name.upper()

    assert turns.in_any_order(work, ["lock"]) == ["LOCK"]
    assert worked == ["lock"]


def test_what_is_being_compiled_is_not_given_up(tmp_path: Path, holder: Any) -> None:
    worked: list[str] = []
    done = killing(holder, 2)

    def work(name: str) -> str:
        worked.append(name)
        with turns.turn(tmp_path / name, lambda: False), turns.turn(tmp_path / "lock", done):
            return name.upper()

    assert turns.in_any_order(work, ["a", "b"]) == ["A", "B"]
    assert worked == ["a", "b"]


def test_functions_of_a_user_do_not_fail_because_another_process_compiles_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = A.define(lambda x: x * 1.2508, lambda a, b: a + b, lambda p: p, 0.0, commutative=True)
    query = pf.Query(
        {"sliding": W.sliding(4, 2), "visit": W.session(3)},
        {"own": own("v"), "mean": A.mean("v")},
        time="t",
    )
    waited, taken = turns._waited, list[Path]()

    def taken_at_first(path: Path, done: Callable[[], bool]) -> int | None:
        if not turns._waits.get() and path not in taken:
            taken.append(path)
            raise turns.Taken
        return waited(path, done)

    monkeypatch.setattr(turns, "_waited", taken_at_first)
    table = pa.table({"t": [1, 2, 4], "v": [1.0, 2.0, 4.0]})
    rows = query.over(table).to_pylist()
    assert taken
    events = list(zip(table["t"].to_pylist(), table["v"].to_pylist(), strict=True))
    sums = [1.2508 * sum(v for t, v in events if row["start"] <= t < row["end"]) for row in rows]
    assert [row["own"] for row in rows] == pytest.approx(sums)


def test_nobody_waits_for_ever(
    tmp_path: Path, holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    with turns.turn(tmp_path / "lock", lambda: False):
        assert holder.poll() is None


def test_without_locks_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(turns.fcntl, "flock", unsupported)
    with turns.turn(tmp_path / "lock", lambda: False):
        pass
    with turns.turn(tmp_path / "missing" / "lock", lambda: False):
        pass


# What is compiled before it is needed.


def compilations(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> int:
    """Kernels that were neither in memory nor on disk."""
    missed = []
    load = kernel.Kept.load_overload

    def listening(self: Any, sig: Any, target: Any) -> Any:
        found = load(self, sig, target)
        if found is None:
            missed.append(sig)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(kernel.Kept, "load_overload", listening)
        action()
    return len(missed)


@pytest.mark.parametrize("given", ["nothing", "schema", "table"])
def test_a_query_that_was_warmed_up_compiles_nothing(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(1)
    n = 5000
    table = pa.table({"k": r.integers(0, 9, n).astype(str), "t": np.arange(n), "v": r.random(n)})
    types = {"nothing": None, "schema": table.schema, "table": table}

    def lift(x: float) -> float:
        return x * 1.5

    def add(a: float, b: float) -> float:
        return a + b + 0.0

    own = A.define(lift, add, lambda p: p, 0.0, commutative=True)
    query = pf.Query(
        {"sliding": W.sliding(40, 10), "visit": W.session(2)},
        {"peak": A.max("v"), "own": own("v")},
        key="k",
        time="t",
    )
    pf.warm_up(query, types[given])
    assert compilations(monkeypatch, lambda: query.over(table)) == 0
    shuffled = table.take(pa.array(r.permutation(n)))
    assert compilations(monkeypatch, lambda: query.over(shuffled)) == 0


def test_warming_up_answers_tables_of_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that all tests share are compiled before; so it is asked what would compile them."""
    looks = set()

    def look(query: pf.Query, table: pa.Table, *, merge: str) -> None:
        in_order = bool((np.diff(table["t"].to_numpy()) >= 0).all())
        looks.add((len(table["k"].unique()) > 1, in_order, merge))

    monkeypatch.setattr(pf.Query, "over", look)
    pf.warm_up(pf.Query(W.sliding(4, 2), {"peak": A.max("v")}, key="k", time="t"))
    merges = ("auto", "sba", "flat_fat")
    kinds = ((False, True), (True, True), (True, False))
    assert looks == {(*kind, merge) for kind in kinds for merge in merges}


WARMED = """
import json, sys
import numpy as np
import pyarrow as pa
import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.compiling.kernel import Kept

query = pf.Query(W.sliding(4, 2), {"peak": A.max("v")}, key="k", time="t")
pf.warm_up(query)
missed = []
load = Kept.load_overload
def listening(self, sig, target):
    found = load(self, sig, target)
    if found is None:
        missed.append(self._dispatcher.py_func.__qualname__)
    return found
Kept.load_overload = listening
n = 2000
for keys in (1, 7):
    table = pa.table({"k": (np.arange(n) % keys).astype(str), "t": np.arange(n), "v": np.ones(n)})
    for order in (np.arange(n), np.random.default_rng(1).permutation(n)):
        query.over(table.take(pa.array(order)))
json.dump(missed, sys.stdout)
"""


@pytest.mark.processes
def test_a_new_process_on_a_new_machine_compiles_all_of_a_query_when_it_is_warmed_up(
    tmp_path: Path,
) -> None:
    given = environment(PANEFLOW_CACHE=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", WARMED], env=given, stdout=subprocess.PIPE)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda q: pf.warm_up("query"),  # type: ignore[arg-type]
        lambda q: pf.warm_up(q, pa.schema({"t": pa.int64()})),
        lambda q: pf.warm_up(q, pa.schema({"t": pa.string(), "v": pa.float64()})),
        lambda q: pf.warm_up(q, pa.schema({"t": pa.int64(), "v": pa.list_(pa.int64())})),
        lambda q: pf.warm_up(q, 7),
    ],
)
def test_what_cannot_be_warmed_up_is_refused(wrong: Callable[[pf.Query], None]) -> None:
    query = pf.Query(W.tumbling(4), {"n": A.max("v")}, time="t")
    with pytest.raises(pf.PaneflowError):
        wrong(query)


def test_every_kind_of_window_can_be_warmed_up() -> None:
    windows = {
        "count": W.count(5, 2),
        "delta": W.delta("d", 10, 5),
        "mark": W.punctuation("m"),
        "tuple": W.slide_by_tuple(5, 2),
        "time": W.slide_by_time(5, 2),
    }
    pf.warm_up(pf.Query(windows, {"n": A.count()}, time="t"))
    pf.warm_up(pf.Query(W.sliding("1 hour", "1 minute"), {"n": A.count()}, time="t"))


def test_helpers_are_for_compiled_functions_alone() -> None:
    inner = helper(doubled)
    for _ in range(2):
        with pytest.raises(TypeError, match="doubled can be called by compiled functions only"):
            inner(1.0)
    assert compiled(lambda x: inner(x) + 1)(1.0) == 3.0
