"""Kernels: compiled wherever events or slices are looped over, once per machine, never confused.

A loop that silently ran in Python, or was compiled anew in every process, would be a hundred times
slower and still give the right rows; so it is asked for here.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from numba.core.compiler import run_frontend
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.typed_passes import type_inference_stage

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import kernels
from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.kernels import compile_loop
from paneflow.aggregates.values import Kind
from paneflow.compiling import compiled
from paneflow.planning.merge_choice import AVAILABLE
from tests.properties.cases import AGGREGATES, SHARED, WINDOWS, draw_table, seeded_aggregate

ROOT = Path(__file__).resolve().parents[2]
PYTHON_OBJECTS = {"approx_distinct", "approx_quantile"}


def dispatchers() -> Iterator[tuple[str, str, Any]]:
    """Every function of ours that Numba knows, generated ones included."""
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.partition(".")[0] == "paneflow" or name.startswith("paneflow_kernel_"):
            for attribute, value in list(vars(module).items()):
                if isinstance(value, Dispatcher) and value.__module__ == name:
                    yield name, attribute, value


@pytest.fixture(scope="module")
def everything() -> None:
    """Ask for all aggregates in all windows, by every way to merge."""
    r = random.Random(5)
    table = draw_table(r, 40, stamped=False)
    windows = {name: make(r, False) for name, make in WINDOWS.items()}
    aggregates = {name: make(r) for name, make in AGGREGATES.items()}
    for key in (None, "k", ["k", "h"]):
        for given in (table, table.sort_by("t")):
            pf.Query(windows, aggregates, key=key, time="t").over(given)
    many = [W.sliding(range_, slide) for range_ in range(1, 5) for slide in range(9, 13)]
    pf.Query(many, {"n": A.count()}, key="k", time="t").over(table)
    refused = {("subtract", "max")}
    for merge in AVAILABLE:
        for aggregate in (A.sum("i"), A.max("x")):
            if (merge, aggregate.name) not in refused:
                pf.Query(W.sliding(9, 2), {"r": aggregate}, time="t").over(table, merge=merge)


@pytest.mark.long
@pytest.mark.usefixtures("everything")
def test_no_kernel_falls_back_to_python_objects() -> None:
    seen = 0
    for module, name, dispatcher in dispatchers():
        for overload in dispatcher.overloads.values():
            seen += 1
            assert not overload.objectmode, f"{module}.{name}"
            assert not overload.lifted, f"{module}.{name}"
    assert seen > 50


@pytest.mark.long
@pytest.mark.usefixtures("everything")
def test_no_kernel_writes_to_what_it_may_only_read() -> None:
    """Machine code is made for arrays that may be written; Numba is asked about the others."""
    asked = 0
    for module, name, dispatcher in dispatchers():
        for given, overload in dispatcher.overloads.items():
            if any("readonly" in str(kind) for kind in given):
                assert inferred_result(dispatcher, given) == overload.signature.return_type, (
                    f"{module}.{name}"
                )
                asked += 1
    assert asked >= 10


def inferred_result(dispatcher: Any, given: tuple[Any, ...]) -> Any:
    """What Numba says that a function returns; raises if it writes where it may not."""
    described = dispatcher.targetdescr
    described.typing_context.refresh()  # where all kernels were found, nothing was compiled yet
    described.target_context.refresh()
    inferred = type_inference_stage(
        described.typing_context,
        described.target_context,
        run_frontend(dispatcher.py_func),
        given,
        None,
    )
    return inferred.return_type


def test_a_kernel_that_writes_to_what_it_may_only_read_is_noticed() -> None:
    """The check above does see one."""

    @compiled
    def double(values: Any) -> None:
        values[0] *= 2

    array = np.arange(3)
    array.flags.writeable = False
    with pytest.raises(TypingError, match="readonly"):
        inferred_result(double, (numba.typeof(array),))


def names_in(code: types.CodeType) -> set[str]:
    inner = [names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*inner)


@pytest.mark.long
@pytest.mark.usefixtures("everything")
def test_every_kernel_that_python_calls_was_compiled() -> None:
    """So the test before this one has seen them all; kernels that kernels call are inside those."""
    for module, name, dispatcher in dispatchers():
        if not module.startswith(("paneflow.slicing", "paneflow.merging.multiset")):
            continue
        functions = (
            f for f in vars(sys.modules[module]).values() if isinstance(f, types.FunctionType)
        )
        if any(name in names_in(function.__code__) for function in functions):
            assert dispatcher.signatures, f"{module}.{name} was never called"


CONSTANT = {
    name: aggregate
    for name in AGGREGATES
    if isinstance(aggregate := seeded_aggregate(name, SHARED[1]), Constant)
}


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.FLOAT], ids=lambda kind: str(kind.value))
@pytest.mark.parametrize("name", CONSTANT)
def test_operators_are_compiled(name: str, kind: Kind) -> None:
    aggregate = CONSTANT[name]
    for operator in aggregate.operators(dict.fromkeys(aggregate.columns, kind)):
        assert operator.compiled == (name not in PYTHON_OBJECTS)


@pytest.mark.long
def test_built_in_aggregates_never_loop_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str, *_: Any) -> Callable[..., Any]:
        raise AssertionError(f"not taken from the folder of kernels:\n{text}")

    kernels._kernel.cache_clear()
    monkeypatch.setattr(kernels, "_in_process", refuse)
    r = random.Random(6)
    table = draw_table(r, 40, stamped=True)
    built_in = [n for n in AGGREGATES if n not in PYTHON_OBJECTS and not n.startswith("define")]
    aggregates = {name: seeded_aggregate(name, SHARED[0]) for name in built_in}
    windows = {name: make(r, True) for name, make in WINDOWS.items()}
    assert pf.Query(windows, aggregates, key="k", time="t").over(table).num_rows > 0


def test_what_cannot_be_compiled_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above does see a loop that runs as Python."""
    calls: list[str] = []

    def refuse(text: str, *_: Any) -> Callable[..., Any]:
        calls.append(text)
        raise AssertionError

    kernels._kernel.cache_clear()
    monkeypatch.setattr(kernels, "_in_process", refuse)
    table = pa.table({"t": [1, 2], "v": [1.0, 2.0]})
    with pytest.raises(AssertionError):
        pf.Query(W.tumbling(5), {"n": A.approx_distinct("v")}, time="t").over(table)
    assert calls


# Two functions are never taken for each other.

APPLIED = """
    def applied(values, out):
        for i in range(len(values)):
            out[i] = user_f(values[i])
    """


def applied(function: Callable[[float], float]) -> Any:
    values, out = np.array([1.0, 2.0]), np.empty(2)
    compile_loop("applied", {"user_f": function}, APPLIED, "applied")(values, out)
    return out.tolist()


def test_functions_of_one_name_do_not_clash() -> None:
    def f(x: float) -> float:
        return x + 1

    first = f

    def f(x: float) -> float:  # type: ignore[no-redef]
        return x + 2

    assert (applied(first), applied(f)) == ([2.0, 3.0], [3.0, 4.0])


def test_closures_of_one_text_do_not_clash() -> None:
    def plus(n: float) -> Callable[[float], float]:
        def f(x: float) -> float:
            return x + n

        return f

    assert (applied(plus(1)), applied(plus(2.5))) == ([2.0, 3.0], [3.5, 4.5])
    assert (applied(lambda x: x + 1), applied(lambda x: x + 2)) == ([2.0, 3.0], [3.0, 4.0])


def test_titles_do_not_decide() -> None:
    def f(x: float) -> float:
        return -x

    assert applied(f) == [-1.0, -2.0]
    assert applied(lambda x: x) == [1.0, 2.0]


# What one process has compiled, the next one loads.

SCRIPT = '''
import functools, json, math, sys

import numpy as np
from numba.core import event

recorder = event.RecordingListener()
event.register("numba:compile", recorder)

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.kernels import compile_loop
from paneflow.compiling.folder import folder

def plus(n):
    def f(x):
        return x + n
    return f

def helped(x):
    return plus_one(x)

def plus_one(x):
    return x + 1

def lower(p):
    return p[0] / p[1]

def add(a, b):
    return a[0] + b[0], a[1] + b[1]

def pair(x):
    return x, 1

LOOP = """
    def applied(values, out):
        for i in range(len(values)):
            out[i] = user_f(values[i])
    """
STYLES = {
    "helper": helped,
    "closure": plus(1.0),
    "anonymous": lambda x: x + 7,
    "anonymous, calls math": lambda x: math.log(x),
    "anonymous, over a closure": (lambda n: lambda x: x + n)(2.0),
}

def compiled_by(action):
    before = len(recorder.buffer)
    answer = action()
    return {"compiled": len(recorder.buffer) - before, "answer": answer}

def style(function):
    values, out = np.array([1.0, 4.0]), np.empty(2)
    compile_loop("applied", {"user_f": function}, LOOP, "applied")(values, out)
    return out.tolist()

def query(aggregate):
    table = [{"t": t, "v": float(t * t % 7)} for t in range(20)]
    rows = pf.Query(W.sliding(6, 2), {"r": aggregate}, time="t").over(table)
    return [row["r"] for row in rows]

report = {"def": compiled_by(lambda: style(plus_one))}
if "everything" in sys.argv:
    report |= {name: compiled_by(functools.partial(style, f)) for name, f in STYLES.items()}
    report["max"] = compiled_by(lambda: query(A.max("v")))
    own = A.define(pair, add, lower, (0.0, 0), commutative=True)
    report["define"] = compiled_by(lambda: query(own("v")))
report["folder"] = str(folder())
print(json.dumps(report))
'''


def run(tmp_path: Path, cache: Path, *arguments: str) -> dict[str, Any]:
    script = tmp_path / "script.py"
    if not script.exists():
        script.write_text(SCRIPT)
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {
        "PANEFLOW_CACHE": str(cache),
        "PYTHONPATH": str(ROOT / "src"),
        "TMPDIR": str(temporary),
    }
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("kernels")
    first, second = (run(folder, folder / "cache", "everything") for _ in range(2))
    assert first["folder"].startswith(str(folder / "cache"))
    return first, second


@pytest.mark.processes
@pytest.mark.parametrize(
    "what",
    [
        "max",
        "define",
        "def",
        "helper",
        "closure",
        "anonymous",
        "anonymous, calls math",
        "anonymous, over a closure",
    ],
)
def test_the_next_process_compiles_nothing(what: str, two_processes: tuple[Any, Any]) -> None:
    first, second = two_processes
    assert first[what]["compiled"] > 0
    assert second[what]["compiled"] == 0
    assert second[what]["answer"] == first[what]["answer"]


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path: Path) -> None:
    """Not even the superuser can make a folder below a file."""
    obstacle = tmp_path / "file"
    obstacle.write_text("not a folder")
    report = run(tmp_path, obstacle / "cache")
    assert report["def"]["answer"] == [2.0, 5.0]
    assert report["folder"] == "None"
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_does_no_harm(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    report = run(tmp_path, locked)
    assert report["def"]["answer"] == [2.0, 5.0]
