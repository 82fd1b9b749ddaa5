"""Every merge algorithm gives what recalculating gives: one matrix of algorithms and aggregates.

The text of an algorithm is the same whether it is compiled or not. So the whole matrix runs as
plain Python, where nothing has to be compiled first. Maxima run compiled as well, an aggregate for
each form of partial in `make test-slow`, and all of them in `make test-exhaustive`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paneflow import merging
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.errors import UnsupportedError
from paneflow.merging.recalculate import Recalculate
from tests.merging.algorithms import SUBJECTS, Subject, Window
from tests.merging.cases import PAIRS, TRACES, Case, cases, windows

FORMS = {"max": "a number", "sum": "a tuple", "bloom filter": "a row"}
COMPILED = {name for name, case in cases().items() if case.operator.compiled}


def matrix(
    *names: str,
    allowed: bool = True,
    long: Collection[str] = (),
    exhaustive: Collection[str] = (),
) -> pytest.MarkDecorator:
    """Algorithms × aggregates, where the law allows it, or where it does not."""
    marks = dict.fromkeys(long, pytest.mark.long)
    marks |= dict.fromkeys(exhaustive, pytest.mark.exhaustive)
    chosen = [
        pytest.param(
            subject,
            name,
            id=f"{subject.name}-{name}",
            marks=marks.get(name, ()),
        )
        for subject in SUBJECTS
        for name, case in cases().items()
        if case.allowed_by(subject.law) is allowed and (not names or name in names)
    ]
    return pytest.mark.parametrize(("subject", "name"), chosen)


def play(trace: str, window: Window, case: Case) -> Partials:
    """The answers to a trace's queries."""
    answers = []
    inserted = evicted = 0
    for act in trace:
        if act == "i":
            window.insert(*case.at(inserted))
            inserted += 1
        elif act == "e":
            window.evict()
            evicted += 1
        else:
            assert len(window) == inserted - evicted
            answers.append(window.query())
    return columns(case.operator, answers)


@functools.cache
def recalculated(trace: str, name: str) -> Partials:
    """The answers to a trace, each folded anew."""
    case = cases()[name]
    answers = []
    inserted = evicted = 0
    for act in trace:
        inserted += act == "i"
        evicted += act == "e"
        if act == "q":
            answers.append(folded(case, evicted, inserted))
    return columns(case.operator, answers)


def folded(case: Case, start: int, end: int) -> tuple[Any, ...]:
    """The definition, in nothing but Python."""
    operator = case.operator
    merged = operator.start()
    for i in range(start, end):
        if operator.bare:
            merged = (operator.combine(merged[0], case.at(i)[0]),)
        else:
            merged = operator.combine(merged, case.at(i))
    return merged


def columns(operator: Operator, answers: list[tuple[Any, ...]]) -> Partials:
    """Answers one by one as columns."""
    stacked = operator.empty(len(answers))
    for k, column in enumerate(stacked):
        for i, answer in enumerate(answers):
            column[i] = answer[k]
    return stacked


def assert_same(case: Case, actual: Partials, expected: Partials) -> None:
    """Equal to the bit where the aggregate is exact, otherwise close."""
    for given, wanted in zip(actual, expected, strict=True):
        assert given.dtype == wanted.dtype
        if given.dtype == object:
            assert given.tolist() == wanted.tolist()
        elif not case.exact:
            np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-9)
        else:
            bits = np.int64 if given.dtype == np.float64 else given.dtype
            np.testing.assert_array_equal(given.view(bits), wanted.view(bits))


@pytest.mark.parametrize("trace", TRACES)
@matrix()
def test_streaming_equals_recalculating(subject: Subject, name: str, trace: str) -> None:
    case = cases()[name]
    window = subject.window(replace(case.operator, compiled=False), 4)
    assert_same(case, play(TRACES[trace], window, case), recalculated(TRACES[trace], name))


@matrix("max", "ordered pairs", long=["ordered pairs"])
def test_compiled_streaming_equals_recalculating(subject: Subject, name: str) -> None:
    case = cases()[name]
    for trace in TRACES.values():
        window = subject.window(case.operator, 4)
        assert_same(case, play(trace, window, case), recalculated(trace, name))


@matrix("bloom filter", "moment sketch", "histogram", "record row")
def test_rows_are_not_shared(subject: Subject, name: str) -> None:
    """A row that was inserted or answered is not changed by what the window does later."""
    case = cases()[name]
    window = subject.window(replace(case.operator, compiled=False), 4)
    inserted = [case.at(i)[0].copy() for i in range(60)]
    answers, copies = [], []
    for i, row in enumerate(inserted):
        if len(window) == 7:
            window.evict()
        window.insert(row)
        answers.append(window.query()[0])
        copies.append(answers[i].copy())
    np.testing.assert_array_equal(inserted, case.partials[0][:60])
    np.testing.assert_array_equal(answers, copies)


@functools.cache
def recalculated_windows(name: str, power: float, compiled: bool) -> list[Partials]:
    """The merged partials of all windows of the grids, by the definition."""
    case = cases()[name]
    operator = replace(case.operator, compiled=compiled)
    merged = []
    for pair in PAIRS:
        lo, hi = windows(pair, power)
        merged.append(Recalculate(operator, case.repeated(int(hi.max()))).merge(lo, hi))
    return merged


def assert_grids(subject: Subject, name: str, power: float, compiled: bool) -> None:
    case = cases()[name]
    operator = replace(case.operator, compiled=compiled)
    for pair, expected in zip(PAIRS, recalculated_windows(name, power, compiled), strict=True):
        lo, hi = windows(pair, power)
        merged = subject.merger(operator, case.repeated(int(hi.max()))).merge(lo, hi)
        assert_same(case, merged, expected)
        if case.lower is not None:
            assert_same_results(case, hi - lo, merged, expected)


def assert_same_results(case: Case, n: Array, merged: Partials, expected: Partials) -> None:
    """Not only the partials: what is made of them."""
    assert case.lower is not None
    (given, shown), (wanted, _) = case.lower(n, merged), case.lower(n, expected)
    if case.exact:
        np.testing.assert_array_equal(given[shown], wanted[shown])
    else:
        np.testing.assert_allclose(given[shown], wanted[shown], rtol=1e-9)


def test_the_grids_are_those_of_the_source() -> None:
    assert len(PAIRS) == 48
    lengths = [int(np.subtract(*windows(pair)[::-1]).max()) for pair in PAIRS]
    assert lengths[:18] == [2**k for k in range(3, 21)]
    # 2**17 = 43,690 * 3 + 2: a window is that many slides, each cut in two, and a remainder.
    assert lengths[18:21] == [131_072, 65_536, 2 * 43_690 + 1]


@pytest.mark.parametrize("name", list(cases()))
def test_recalculating_columns_is_folding(name: str) -> None:
    """The merger by which the grids are judged, against plain Python."""
    case = cases()[name]
    for pair in PAIRS[::7]:
        lo, hi = windows(pair, 1 / 4)
        answers = [folded(case, *bounds) for bounds in zip(lo.tolist(), hi.tolist(), strict=True)]
        operators = [replace(case.operator, compiled=False), case.operator]
        for operator in operators if name in FORMS else operators[:1]:
            merged = Recalculate(operator, case.repeated(int(hi.max()))).merge(lo, hi)
            assert_same(case, merged, columns(operator, answers))


@matrix(long=cases().keys() - FORMS.keys() - {"ordered pairs"})
def test_columnar_equals_recalculating(subject: Subject, name: str) -> None:
    """The 48 range/slide pairs, scaled down: windows of n slides have the cube root of n."""
    assert_grids(subject, name, 1 / 3, compiled=False)


@matrix(*COMPILED, long=FORMS.keys() - {"max"}, exhaustive=COMPILED - FORMS.keys())
def test_compiled_columnar_equals_recalculating(subject: Subject, name: str) -> None:
    """The same compiled, windows of n slides having the square root of n: up to 1,024."""
    assert_grids(subject, name, 1 / 2, compiled=True)


@functools.cache
def falling_values() -> Partials:
    # Falling by and by, so that maxima leave the window all the time.
    n = max(int(windows(pair)[1].max()) for pair in PAIRS)
    return (np.cumsum(np.random.default_rng(6).normal(-0.1, 1.0, n)),)


@functools.cache
def sampled_maxima() -> list[tuple[Array, Array, Partials]]:
    """Some windows of each grid at its full size, and the greatest value in each."""
    rng = np.random.default_rng(5)
    recalculate = Recalculate(cases()["max"].operator, falling_values())
    sampled = []
    for pair in PAIRS:
        lo, hi = windows(pair)
        starts = rng.integers(0, len(lo), 6)
        few = np.unique(np.clip(starts[:, None] + np.arange(3), 0, len(lo) - 1))
        sampled.append((lo[few], hi[few], recalculate.merge(lo[few], hi[few])))
    return sampled


@matrix("max")
def test_columnar_equals_recalculating_at_full_size(subject: Subject, name: str) -> None:
    """The 48 pairs as they are in the source, with up to 2**20 slices to a window.

    The window passes over every slice; answers are compared for a sample of the windows, since
    recalculating all of them would take hours.
    """
    case = cases()[name]
    for lo, hi, expected in sampled_maxima():
        merged = subject.merger(case.operator, falling_values()).merge(lo, hi)
        assert_same(case, merged, expected)


@matrix("max", "sum")
def test_windows_one_slice_apart_of_which_some_are_longer(subject: Subject, name: str) -> None:
    """The first and the last are equally long, as all would be if no slice were absent."""
    case = cases()[name]
    operator = replace(case.operator, compiled=False)
    lo, hi = np.array([0, 1, 2, 3]), np.array([2, 5, 5, 5])
    merged = subject.merger(operator, case.partials).merge(lo, hi)
    assert_same(case, merged, Recalculate(operator, case.partials).merge(lo, hi))


@matrix("max", "sum")
def test_merging_nothing(subject: Subject, name: str) -> None:
    """No windows, and windows without slices."""
    case = cases()[name]
    operator = replace(case.operator, compiled=False)
    merger = subject.merger(operator, case.partials)
    none = np.empty(0, np.int64)
    assert_same(case, merger.merge(none, none), operator.empty(0))
    empty = np.array([0, 3, 3, 500])
    assert_same(case, merger.merge(empty, empty), columns(operator, [operator.start()] * 4))


@matrix(allowed=False)
def test_laws_are_named(subject: Subject, name: str) -> None:
    """An algorithm whose law an aggregate breaks refuses it on both faces, and names the law."""
    case = cases()[name]
    named = f"^merge='{subject.name}' needs a combine that is {subject.law}"
    with pytest.raises(UnsupportedError, match=named) as refused:
        subject.merger(case.operator, case.partials)
    assert "choose 'sba', or leave merge at 'auto'" in str(refused.value)
    with pytest.raises(UnsupportedError, match=named):
        subject.window(case.operator, 4)


@pytest.mark.parametrize("name", ["subtract", "slick_deque"])
def test_subtracting_floats_is_refused(name: str) -> None:
    """Even where an inverse is given: what is left after many subtractions drifts."""
    (subject,) = (s for s in SUBJECTS if s.name == name)
    case = cases()["drifting sum"]
    assert case.operator.invert is not None
    with pytest.raises(UnsupportedError, match=r"float_sum\(v\) is over floats, .* drift"):
        subject.merger(case.operator, case.partials)


def test_no_algorithm_is_left_out() -> None:
    """Whatever merges slices in `paneflow.merging` takes part in this matrix."""
    found = set()
    for module in pkgutil.walk_packages(merging.__path__, "paneflow.merging."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and "name" in vars(value) and hasattr(value, "merge"):
                found.add(vars(value)["name"])
    assert found == {subject.name for subject in SUBJECTS}
