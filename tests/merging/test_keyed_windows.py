"""Windows of many keys in one pool give what each of them would give alone.

Keys come and go, windows grow out of their regions, and slots are used again; the matrix of
algorithms and aggregates runs as plain Python, and compiled for one aggregate of each form of
partial; all but sums, which streams need anyway, where time is not short.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from paneflow.aggregates.operator import Operator
from paneflow.errors import UnsupportedError
from paneflow.merging import MERGERS
from paneflow.merging.keyed.fifos import KeyedWindows, Slides
from paneflow.merging.streaming import FIFOS, keyed_windows
from tests.merging.cases import EVENTS, Case, cases
from tests.merging.test_fifo_windows import FORMS, assert_same, columns

LAWS = {"subtract": "invertible", "slick_deque": "selective or invertible"}
NAMES = [*FIFOS, "slick_deque", "fiba"]
KEYS = 7


def test_every_algorithm_that_keeps_anything_has_streaming_windows() -> None:
    assert {*NAMES, "recalculate"} == set(MERGERS)


def matrix(*names: str, allowed: bool = True, long: Collection[str] = ()) -> pytest.MarkDecorator:
    """Algorithms × aggregates, where the law allows it, or where it does not."""
    chosen = [
        pytest.param(
            algorithm,
            name,
            id=f"{algorithm}-{name}",
            marks=[pytest.mark.long] if name in long and algorithm != "two_stacks" else [],
        )
        for algorithm in NAMES
        for name, case in cases().items()
        if case.allowed_by(LAWS.get(algorithm)) is allowed and (not names or name in names)
    ]
    return pytest.mark.parametrize(("algorithm", "name"), chosen)


@dataclass
class Model:
    """What is in the window of a key: times, and which of the case's partials stand there."""

    inside: list[tuple[int, list[int]]] = field(default_factory=list)
    left: int = 0
    entered: int = 0

    def enter(self, t: int, partial: int) -> None:
        for time, partials in self.inside:
            if time == t:
                partials.append(partial)
                return
        self.inside.append((t, [partial]))
        self.inside.sort(key=lambda entry: entry[0])
        self.entered += 1

    def leave(self, since: int) -> None:
        kept = [entry for entry in self.inside if entry[0] >= since]
        self.left += len(self.inside) - len(kept)
        self.inside = kept

    def merged(self, case: Case) -> tuple[Any, ...]:
        operator = case.operator
        merged = operator.start()
        for _, partials in self.inside:
            entry = case.at(partials[0])
            for i in partials[1:]:
                entry = _combined(operator, entry, case.at(i))
            merged = _combined(operator, merged, entry)
        return merged


def _combined(operator: Operator, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return (operator.combine(a[0], b[0]),) if operator.bare else operator.combine(a, b)


def play(case: Case, windows: KeyedWindows, seed: int, late: bool) -> None:
    """Some keys slide, some leave, others take their slots; every answer is compared."""
    r = random.Random(seed)
    models: dict[int, Model] = {}
    now, at, span = 0, 0, r.choice([3, 20, 60])
    windows.reserve(KEYS)
    for _ in range(30):
        steps = r.choice([1, 1, 2, 5])
        keys = sorted({*models, *r.sample(range(KEYS), 2)})
        times: list[int] = []
        which: list[int] = []
        first, rows_at = [0], [0]
        lo, hi, since, until, expected = [], [], [], [], []
        for key in keys:
            model = models.setdefault(key, Model())
            entering = {now + r.randrange(steps) for _ in range(r.choice([0, 1, 4]))}
            if late and model.inside:
                entering |= {r.randrange(max(now - span + 1, 0), now + 1)}
            for t in sorted(entering):
                times.append(t)
                which.append(at)
                at += 1
            mine = dict(zip(times[first[-1] :], which[first[-1] :], strict=True))
            first.append(len(times))
            for step in range(steps):
                end = now + step + 1
                for t in [t for t in sorted(mine) if t < end]:
                    model.enter(t, mine.pop(t))
                model.leave(end - span)
                if model.inside:
                    lo.append(model.left)
                    hi.append(model.entered)
                    since.append(end - span)
                    until.append(end)
                    expected.append(model.merged(case))
            rows_at.append(len(lo))
        arrays = map(np.int64, (rows_at, lo, hi, since, until, first, times))
        slides = Slides(np.array(keys), *(np.atleast_1d(a) for a in arrays))
        partials = tuple(column[np.array(which, np.int64) % EVENTS] for column in case.partials)
        merged = windows.slide(slides, partials)
        assert_same(case, merged, columns(case.operator, expected))
        now += steps
        gone = [key for key in keys if not models[key].inside or r.random() < 0.1]
        windows.clear(np.array(gone, np.int64))
        for key in gone:
            del models[key]


@matrix()
def test_many_windows_as_plain_python(algorithm: str, name: str) -> None:
    case = cases()[name]
    plain = replace(case, operator=replace(case.operator, compiled=False))
    for seed in range(3):
        play(plain, keyed_windows(algorithm, plain.operator, 4), seed, algorithm == "fiba")


@matrix(*FORMS, long=FORMS.keys() - {"sum"})
def test_many_windows_compiled(algorithm: str, name: str) -> None:
    case = cases()[name]
    for seed in range(5):
        play(case, keyed_windows(algorithm, case.operator, 4), seed, algorithm == "fiba")


@matrix(allowed=False)
def test_a_broken_law_is_refused(algorithm: str, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"merge='{algorithm}' needs"):
        keyed_windows(algorithm, cases()[name].operator, 4)
