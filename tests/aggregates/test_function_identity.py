"""Functions are told apart by what they compute, the same way in every process."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import SlowAggregateWarning
from paneflow.aggregates._functions import sources
from paneflow.engines.spark.versions import stream_identity
from paneflow.slicing.layout import identity_of
from paneflow.windows import KEEP, OPEN, Custom, WindowClass

ROOT = Path(__file__).resolve().parents[2]
TABLE = pa.table({"t": [1, 2, 3], "x": [1.0, 2.0, 4.0]})
SCALE = 2.0

either_way = pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")


def weighted(weights: Any) -> Callable[[Any], float]:
    return lambda x: float((x * weights[: len(x)]).sum())


def from_text(text: str) -> Callable[[Any], Any]:
    names: dict[str, Any] = {}
    exec(text, names)
    made: Callable[[Any], Any] = names["f"]
    return made


def scaled(x: Any) -> Any:
    return x.sum() * SCALE


def through_a_helper(x: Any) -> Any:
    return scaled(x)


@dataclass(frozen=True)
class Times:
    factor: float

    def __call__(self, x: Any) -> Any:
        return x.sum() * self.factor

    def method(self, x: Any) -> Any:
        return x.sum() * self.factor


def applied(function: Callable[..., Any]) -> pf.Query:
    return pf.Query(W.tumbling(10), {"r": A.apply(function, "x")}, time="t")


def defined(lift: Callable[..., Any], identity: Any = 0.0) -> pf.Query:
    total = A.define(lift, lambda a, b: a + b, lambda p: p, identity, commutative=True)
    return pf.Query(W.tumbling(10), {"r": total("x")}, time="t")


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "closures over arrays": (weighted(np.ones(3)), weighted(np.arange(3.0))),
    "closures over lists": (
        lambda x, k=(1, 2): len(x) * k[0],
        lambda x, k=(2, 1): len(x) * k[0],
    ),
    "exec": (from_text("def f(x): return x.sum()"), from_text("def f(x): return x.sum() + 1")),
    "constants": (lambda x: x.sum() * 2, lambda x: x.sum() * 3),
    "kinds of constants": (lambda x: 1, lambda x: True),
    "signs of zero": (lambda x: 0.0, lambda x: -0.0),
    "partial": (functools.partial(pow, 2), functools.partial(pow, 3)),
    "objects": (Times(2.0), Times(3.0)),
    "methods": (Times(2.0).method, Times(3.0).method),
    "builtins": (max, min),
    "ufuncs": (np.max, np.min),
    "inner functions": (lambda x: max(y + 1 for y in x), lambda x: max(y + 2 for y in x)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_slices_of_different_functions_are_not_merged(pair: str) -> None:
    one, other = map(applied, PAIRS[pair])
    with pytest.raises(pf.InputError, match="query"):
        one.slice(TABLE).merge(other.slice(TABLE))
    with pytest.raises(pf.InputError, match="another query"):
        other.finish(one.slice(TABLE))
    assert stream_identity(one) != stream_identity(other)


def test_what_a_helper_reads_is_part_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    query = applied(through_a_helper)
    before = query.slice(TABLE)
    assert query.finish(before)["r"].to_pylist() == [14.0]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.raises(pf.InputError, match="another query"):
        query.finish(before)


def test_what_is_read_of_a_module_is_part_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    import tests.aggregates.test_function_identity as here

    def by_module(x: Any) -> Any:
        return here.scaled(x)

    before = identity_of(applied(by_module))
    assert before == identity_of(applied(by_module))
    monkeypatch.setattr(here, "scaled", lambda x: 0.0)
    assert identity_of(applied(by_module)) != before


@either_way
def test_an_aggregates_functions_and_identity_count() -> None:
    weights = np.array([2.0, 3.0])
    queries = [
        defined(lambda x: x * 2),
        defined(lambda x: x * 3),
        defined(lambda x: x * 2, 0),
        defined(from_text("def f(x): return x * 2.0")),
        defined(from_text("def f(x): return x * 3.0")),
        defined(lambda x: x * weights[0]),
        defined(lambda x: x * weights[1]),
    ]
    assert len({str(identity_of(query)) for query in queries}) == len(queries)


def test_equal_functions_are_the_same_wherever_they_stand() -> None:
    text = "def f(x):\n    return x.sum() * 2"
    one, other = from_text(text), from_text("\n\n\n" + text)
    assert identity_of(applied(one)) == identity_of(applied(other))
    slices = applied(one).slice(TABLE).merge(applied(other).slice(TABLE))
    assert applied(one).finish(slices)["r"].to_pylist() == [28.0]


@pytest.mark.processes
def test_another_process_comes_to_the_same_identity() -> None:
    script = """
import functools
from tests.aggregates.test_function_identity import *
for one, other in PAIRS.values():
    print(identity_of(applied(one)), identity_of(applied(other)))
print(identity_of(applied(through_a_helper)))
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    }
    here = [
        f"{identity_of(applied(one))} {identity_of(applied(other))}"
        for one, other in PAIRS.values()
    ]
    assert runs == {"\n".join([*here, str(identity_of(applied(through_a_helper)))]) + "\n"}


def test_what_cannot_be_told_apart_is_refused() -> None:
    lock = threading.Lock()

    def guarded(x: Any) -> float:
        with lock:
            return float(x.sum())

    query = applied(guarded)
    with pytest.raises(pf.UnsupportedError, match=r"apply\(guarded, x\).*told apart.*lock"):
        query.slice(TABLE)
    assert query.over(TABLE)["r"].to_pylist() == [7.0]
    with query.open(workers=1) as stream:
        stream.push(TABLE)
        stream.finish()
        assert pa.concat_tables(stream.results())["r"].to_pylist() == [7.0]


def test_custom_windows_are_told_apart_by_their_step() -> None:
    def window(step: Callable[..., Any]) -> pf.Query:
        made = dataclass(frozen=True)(
            type(
                "Own",
                (Custom,),
                {
                    "window_class": WindowClass.FCF,
                    "columns": (),
                    "initial": (0,),
                    "step": staticmethod(step),
                },
            )
        )
        return pf.Query(made(), {"n": A.count()}, time="t")

    def opening(mark: int) -> Callable[..., Any]:
        return lambda state, t: (state, mark)

    assert stream_identity(window(opening(OPEN))) == stream_identity(window(opening(OPEN)))
    assert stream_identity(window(opening(OPEN))) != stream_identity(window(opening(KEEP)))


def test_a_users_file_is_parsed_once_for_each_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long_module_of_a_user.py"
    filler = "\n".join(f"def unused_{k}(x): return x + {k}" for k in range(2000))
    path.write_text(
        f"{filler}\ndef lift(x): return x * 2.0\ndef combine(a, b): return a + b\n"
        f"def lower(p): return p\n"
    )
    names: dict[str, Any] = {"__name__": "long_module_of_a_user"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    total = A.define(names["lift"], names["combine"], names["lower"], 0.0, commutative=True)
    query = pf.Query(W.tumbling(10), {"r": total("x")}, time="t")
    read: list[str] = []
    around = sources._text_around

    def counted(function: Any) -> str:
        read.append(function.__name__)
        return around(function)

    monkeypatch.setattr(sources, "_text_around", counted)
    with query.open(workers=2) as stream:
        for step in range(20):
            stream.push(pa.table({"t": [10 * step, 10 * step + 1], "x": [1.0, 2.0]}))
        stream.finish()
        assert sum(table.num_rows for table in stream.results()) == 20
    for _ in range(3):
        query.finish(query.slice(TABLE))
    assert sorted(read) == ["combine", "lift", "lower"]


def test_builtin_and_partial_functions_are_named() -> None:
    assert str(A.apply(max, "x")) == "apply(max, x)"
    assert str(A.apply(functools.partial(operator.mul, 2), "x")) == "apply(partial(mul), x)"
    assert str(A.apply(Times(2.0), "x")) == "apply(Times, x)"


def test_slow_aggregates_are_told_apart_too() -> None:
    table = {3: 1}
    with pytest.warns(SlowAggregateWarning):
        one = str(identity_of(defined(lambda x: float(table.get(int(x), 0)))))
        defined(lambda x: float(table.get(int(x), 0))).over(TABLE)
    table = {3: 2}
    assert one != str(identity_of(defined(lambda x: float(table.get(int(x), 0)))))


@pytest.mark.processes
@pytest.mark.skipif(find_spec("pyspark") is None, reason="there is no Spark")
def test_a_process_without_the_users_file_compiles_all_the_same(tmp_path: Path) -> None:
    """As a worker of Spark on another machine does."""
    from pyspark import cloudpickle

    path = tmp_path / "script_of_a_user.py"
    path.write_text("def twice(x): return x * 2.0\nlift = lambda x: twice(x)\n")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    total = A.define(names["lift"], lambda a, b: a + b, lambda p: p, 0.0, commutative=True)
    query = pf.Query(W.tumbling(10), {"r": total("x")}, time="t")
    sent = tmp_path / "query"
    sent.write_bytes(cloudpickle.dumps((query, TABLE)))
    path.unlink()
    script = f"""
import pickle, warnings
warnings.simplefilter("error")
query, table = pickle.load(open({str(sent)!r}, "rb"))
print(query.finish(query.slice(table))["r"].to_pylist())
"""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout == "[14.0]\n"
