"""FiBA equals a sorted list on any trace, keeps its invariants, and does no more work than stated.

In-order use is also covered by the tests that run over all algorithms.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from paneflow.aggregates.operator import Array, Component, Operator
from paneflow.errors import InputError, UnsupportedError
from paneflow.merging.fiba import Fiba, FibaMerger
from paneflow.merging.fiba_tree.layout import (
    AGGREGATE,
    FREE,
    LENGTH,
    LEVEL,
    NODES,
    OLDEST,
    PARENT,
    SIZE,
    SPINE,
    TIME,
)
from paneflow.merging.recalculate import Recalculate
from tests.merging.cases import Case, cases

Partial = tuple[Any, ...]

COLLECT = cases()["collect"]
# The sum runs as plain Python, as collect does; the others are compiled.
PLAIN_SUM = replace(cases()["sum"], operator=replace(cases()["sum"].operator, compiled=False))
CASES = {
    case.name: case
    for case in (
        PLAIN_SUM,
        COLLECT,
        cases()["max"],
        cases()["affine maps"],
        cases()["moment sketch"],
    )
}

FEW_COMPILED = [
    pytest.param(name, marks=pytest.mark.long) if name in ("affine maps", "moment sketch") else name
    for name in CASES
]


@dataclass
class Sorted:
    """What FiBA must equal: entries in a dictionary, merged in order of time."""

    operator: Operator
    entries: dict[int, Partial] = field(default_factory=dict)

    def insert(self, t: int, *partial: Any) -> None:
        before = self.entries.get(t)
        self.entries[t] = partial if before is None else self.combine(before, partial)

    def bulk_evict(self, t: int) -> None:
        self.entries = {at: p for at, p in self.entries.items() if at > t}

    def range_query(self, since: float, until: float) -> Partial:
        merged = self.operator.start()
        for t in sorted(self.entries):
            if since <= t < until:
                merged = self.combine(merged, self.entries[t])
        return merged

    def query(self) -> Partial:
        return self.range_query(-math.inf, math.inf)

    def combine(self, p: Partial, q: Partial) -> Partial:
        if self.operator.bare:
            return (self.operator.combine(p[0], q[0]),)
        merged: Partial = self.operator.combine(p, q)
        return merged


def assert_equal(case: Case, found: Partial, expected: Partial) -> None:
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, tuple):
            assert a == b
        elif case.exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9)


class Pair:
    """A tree and its model, side by side; partials are those of a case, one after the other."""

    def __init__(self, case: Case, capacity: int = 1) -> None:
        self.case = case
        self.tree = Fiba(case.operator, capacity)
        self.model = Sorted(case.operator)
        self.inserted = 0

    def insert(self, t: int) -> None:
        partial = self.case.at(self.inserted)
        self.inserted += 1
        self.tree.insert(t, *partial)
        self.model.insert(t, *partial)

    def bulk_insert(self, times: Iterable[int]) -> None:
        given = np.array(list(times), np.int64)
        where = np.arange(self.inserted, self.inserted + len(given)) % len(self.case.partials[0])
        self.inserted += len(given)
        self.tree.bulk_insert(given, *(column[where] for column in self.case.partials))
        for t, i in zip(given.tolist(), where.tolist(), strict=True):
            self.model.insert(t, *self.case.at(i))

    def evict(self) -> None:
        self.tree.evict()
        self.model.bulk_evict(min(self.model.entries))

    def bulk_evict(self, t: int) -> None:
        self.tree.bulk_evict(t)
        self.model.bulk_evict(t)

    def check(self) -> None:
        self.tree.check()
        assert len(self.tree) == len(self.model.entries)
        assert_equal(self.case, self.tree.query(), self.model.query())

    def check_range(self, since: int, until: int) -> None:
        found, expected = self.tree.range_query(since, until), self.model.range_query(since, until)
        assert_equal(self.case, found, expected)


def run_trace(pair: Pair, r: random.Random, steps: int) -> None:
    """Inserts at distances from nothing to the whole window, evictions, batches, questions."""
    newest = 0
    spread = r.choice([3, 40, 400])
    for _ in range(steps):
        entries = pair.model.entries
        action = r.random()
        if action < 0.35:
            newest += r.choice([1, 1, 2, 9])
            pair.insert(newest)
        elif action < 0.65:
            pair.insert(newest - r.randrange(spread))
        elif action < 0.75 and entries:
            pair.evict()
        elif action < 0.82 and entries:
            oldest, span = min(entries), max(entries) - min(entries)
            pair.bulk_evict(oldest - 2 + int((span + 4) * r.random() ** 3))
        elif action < 0.9:
            size = r.choice([0, 1, 2, 7, 60])
            pair.bulk_insert(newest + 5 - r.randrange(spread) for _ in range(size))
            newest = max(newest, *pair.model.entries, 0)
        else:
            since = newest - r.randrange(-2, 2 * spread)
            pair.check_range(since, since + r.randrange(2 * spread))
        if r.random() < 0.2:
            pair.check()
    pair.check()


@pytest.mark.parametrize("name", FEW_COMPILED)
def test_any_trace(name: str) -> None:
    for seed in range(12):
        run_trace(Pair(CASES[name]), random.Random(seed), steps=(25, 120, 350)[seed % 3])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_many_traces(name: str) -> None:
    for seed in range(500):
        try:
            run_trace(Pair(CASES[name]), random.Random(f"{name} {seed}"), steps=400)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


ORDERS: dict[str, Callable[[int], list[int]]] = {
    "in order": lambda n: list(range(n)),
    "backwards": lambda n: list(range(n, 0, -1)),
    "from both ends": lambda n: [i if i % 2 else -i for i in range(n)],
    "into the middle": lambda n: [n - i // 2 if i % 2 else i // 2 for i in range(n)],
    "shuffled": lambda n: random.Random(n).sample(range(n), n),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("drain", ["one by one", "in parts", "at once"])
def test_fill_and_drain_twice(order: str, drain: str) -> None:
    pair = Pair(COLLECT)
    for _ in range(2):
        for i, t in enumerate(ORDERS[order](300)):
            pair.insert(t)
            if i % 29 == 0:
                pair.check()
        while pair.model.entries:
            if drain == "one by one":
                pair.evict()
            else:
                times = sorted(pair.model.entries)
                pair.bulk_evict(times[min(36, len(times) - 1) if drain == "in parts" else -1])
            if drain != "one by one" or len(pair.tree) % 7 < 2:
                pair.check()
        assert pair.tree.query() == ((),)
        assert pair.tree.stored == 1


@pytest.mark.parametrize("m", [*range(1, 40), 100, 500, 1199, 1200])
def test_evict_any_number_from_a_deep_tree(m: int) -> None:
    pair = Pair(COLLECT)
    pair.bulk_insert(range(1200))
    pair.bulk_evict(m - 1)
    pair.check()
    for t in (m - 1, m + 3, 1300, 600):
        pair.insert(t)
        pair.check()


@pytest.mark.parametrize("there", [0, 5, 40, 700])
@pytest.mark.parametrize("size", [1, 6, 9, 64, 1000])
def test_batches_before_between_and_after(there: int, size: int) -> None:
    for place in (-10_000, 10_000, 2):
        pair = Pair(COLLECT)
        pair.bulk_insert(range(0, 10 * there, 10))
        pair.bulk_insert(range(place, place + 3 * size, 3))
        pair.check()


def test_entries_of_one_time_are_combined_in_the_order_given() -> None:
    pair = Pair(COLLECT)
    for t in (1, 2, 1, 3, 2, 1):
        pair.insert(t)
    assert pair.tree.query() == ((0, 2, 5, 1, 4, 3),)
    pair.bulk_insert([3, 1, 4, 1, 0, 3])
    pair.check()
    assert len(pair.tree) == 5
    assert pair.tree.query() == ((10, 0, 2, 5, 7, 9, 1, 4, 3, 6, 11, 8),)


def test_a_range_holds_its_beginning_and_not_its_end() -> None:
    pair = Pair(COLLECT)
    pair.bulk_insert(range(0, 1000, 10))
    assert pair.tree.range_query(20, 40) == ((2, 3),)
    assert pair.tree.range_query(20, 20) == ((),)
    assert pair.tree.range_query(40, 20) == ((),)
    for since in range(-5, 1010, 35):
        for until in range(since, 1010, 55):
            pair.check_range(since, until)


def test_results_do_not_change_with_the_tree() -> None:
    # Rows are kept in arrays that are written again and again.
    for fill in (1, 3, 200):
        pair = Pair(cases()["moment sketch"])
        pair.bulk_insert(range(fill))
        taken = [pair.tree.query(), pair.tree.range_query(0, 1)]
        copies = [row.copy() for (row,) in taken]
        for _ in range(50):
            pair.insert(0)
            pair.insert(fill + pair.inserted)
        for (row,), copy in zip(taken, copies, strict=True):
            np.testing.assert_array_equal(row, copy)


def test_an_empty_window() -> None:
    pair = Pair(COLLECT)
    pair.bulk_evict(5)
    pair.bulk_insert([])
    pair.check()
    assert pair.tree.query() == pair.tree.range_query(0, 9) == ((),)
    with pytest.raises(UnsupportedError, match="empty window"):
        pair.tree.evict()


def test_what_is_no_time_or_no_batch_is_refused() -> None:
    window = Fiba(PLAIN_SUM.operator)
    zeros = np.zeros(2, np.int64)
    with pytest.raises(TypeError, match="integer"):
        window.insert(1.5, 0, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="float64"):
        window.bulk_insert(np.array([0.5, 1.5]), zeros, zeros)
    with pytest.raises(InputError, match="each of the 3 times"):
        window.bulk_insert(np.arange(3), zeros, zeros)
    assert len(window) == 0


def test_numbers_of_another_type_do_not_compile_another_function() -> None:
    window = Fiba(cases()["max"].operator)
    window.insert(1, 2.5)
    compiled = len(window._insert.signatures)
    window.insert(np.int32(2), 3)
    window.insert(np.uint8(3), np.float32(0.5))
    assert len(window._insert.signatures) == compiled
    assert window.query() == (3.0,)


def test_check_finds_damage() -> None:
    window = Fiba(PLAIN_SUM.operator)
    window.bulk_insert(np.arange(100), np.zeros(100, np.int64), np.arange(100))
    window.check()
    for numbers, at in (
        (window.store[1], 0),  # an entry
        (window.store[1], AGGREGATE),
        (window.tree, (0, TIME)),
        (window.tree, (0, PARENT)),
        (window.tree, (0, SIZE)),
        (window.tree, (0, LEVEL)),
        (window.tree, (0, SPINE)),
        (window.counters, LENGTH),
        (window.counters, NODES),
        (window.counters, OLDEST),
        (window.counters, FREE),
    ):
        right = numbers[at]
        numbers[at] += 1
        with pytest.raises(AssertionError):
            window.check()
        numbers[at] = right
    window.check()


def test_memory_is_used_again() -> None:
    case = cases()["max"]
    window = Fiba(case.operator, capacity=600)
    r = random.Random(3)
    for t in range(500):
        window.insert(2 * t, *case.at(t))
    nodes = len(window.tree)
    for t in range(500, 20_000):
        window.insert(2 * t - r.choice([0, 0, 1, 301]), *case.at(t))
        while len(window) > 500:
            window.evict()
    for t in range(40_000, 400_000, 100):
        window.bulk_insert(np.arange(t, t + 100), *case.repeated(100))
        window.bulk_evict(t - 400)
    assert len(window) == 499
    assert len(window.tree) == nodes
    window.check()


def test_free_nodes_hold_no_objects() -> None:
    pair = Pair(COLLECT)
    pair.bulk_insert(range(1000))
    pair.bulk_evict(990)
    (column,) = pair.tree.store
    alive = sum(bool(value) for value in column if value is not None)
    # What is left of the nodes along the cut, and their aggregates.
    assert alive < 60


@pytest.mark.parametrize("name", FEW_COMPILED)
def test_the_columnar_face(name: str) -> None:
    case = CASES[name]
    rng = np.random.default_rng(5)
    partials = case.repeated(3000)
    for longest in (1, 12, 300):
        lo = np.sort(rng.integers(0, 2700, 200))
        hi = np.maximum.accumulate(lo + rng.integers(0, longest, 200))
        found = FibaMerger(case.operator, partials).merge(lo, hi)
        expected = Recalculate(case.operator, partials).merge(lo, hi)
        for w in range(len(lo)):
            assert_equal(case, tuple(c[w] for c in found), tuple(c[w] for c in expected))


def test_no_windows() -> None:
    case = CASES["max"]
    none = np.empty(0, np.int64)
    assert [len(c) for c in FibaMerger(case.operator, case.partials).merge(none, none)] == [0]


# Work, counted in combines. A node has at most 7 entries and 8 children, so an aggregate takes
# at most 15 combines.


class Counted:
    """A window whose combines are counted."""

    def __init__(self) -> None:
        self.combines = 0
        number = Component("value", "int64")
        self.window = Fiba(Operator("counted", (), (number,), (0,), self._add, compiled=False))

    def _add(self, a: int, b: int) -> int:
        self.combines += 1
        return a + b

    def cost(self, operation: Callable[..., Any], *arguments: Any) -> int:
        before = self.combines
        operation(*arguments)
        return self.combines - before

    def fill(self, times: Array) -> None:
        self.window.bulk_insert(times, np.ones(len(times), np.int64))


def test_in_order_insert_takes_three_and_a_half_combines() -> None:
    for n in (100, 1000, 10_000):
        counted = Counted()
        cost = sum(counted.cost(counted.window.insert, t, 1) for t in range(n))
        assert cost < 3.5 * n


def test_in_order_slide_takes_ten_combines() -> None:
    counted = Counted()
    window = counted.window
    for t in range(1000):
        window.insert(t, 1)
    inserts, evictions, queries = 0, 0, 0
    for t in range(1000, 5000):
        inserts += counted.cost(window.insert, t, 1)
        evictions += counted.cost(window.evict)
        queries += counted.cost(window.query)
    assert inserts < 3.5 * 4000
    assert evictions < 4.5 * 4000
    assert queries == 2 * 4000


def test_query_takes_two_combines() -> None:
    counted = Counted()
    for n in (1, 7, 8, 50, 3000):
        counted.fill(np.arange(n))
        assert counted.cost(counted.window.query) <= 2


def distant_insert(d: int, older: bool, inserts: int = 300, n: int = 40_000) -> float:
    """Combines for an insert before the d newest entries, or behind the d oldest, on average.

    Between two of these a new newest (or oldest) entry comes, so the place moves on.
    """
    counted = Counted()
    times = deque(range(0, n << 10, 1 << 10))
    counted.fill(np.array(times))
    cost = 0
    for _ in range(inserts):
        times.appendleft(times[0] - 1024) if older else times.append(times[-1] + 1024)
        counted.window.insert(times[0 if older else -1], 1)
        place = d if older else len(times) - d
        t = (times[place - 1] + times[place]) // 2
        cost += counted.cost(counted.window.insert, t, 1)
        times.insert(place, t)
    return cost / inserts


@pytest.mark.parametrize("older", [False, True])
def test_out_of_order_insert_takes_logarithmically_many_combines(older: bool) -> None:
    for d in (1, 8, 64, 512, 4096, 16_384):
        assert distant_insert(d, older) < 12 + 7 * math.log2(d)


def test_bulk_evict_takes_logarithmically_many_combines() -> None:
    counted = Counted()
    counted.fill(np.arange(60_000))
    oldest = 0
    for m in (1, 10, 100, 1000, 10_000, 10, 1, 1000, 100):
        costs = []
        for _ in range(3):
            oldest += m
            costs.append(counted.cost(counted.window.bulk_evict, oldest - 1))
        # A level for each factor of four, and what the eviction before left to do.
        assert np.mean(costs) < 15 * (math.log(m, 4) + 3)


def test_bulk_insert_takes_one_combine_for_each_of_many() -> None:
    counted = Counted()
    for batch in (np.arange(10_000), np.arange(10_000, 20_000), np.arange(-10_000, 0)):
        assert counted.cost(counted.fill, batch) < 1.2 * 10_000


def test_bulk_insert_of_scattered_times_takes_fewer_combines_than_inserts() -> None:
    alone, together = Counted(), Counted()
    for counted in (alone, together):
        counted.fill(np.arange(10_000) * 1000)
    batch = np.arange(5, 10_000, 20) * 1000 + 1
    one_by_one = sum(alone.cost(alone.window.insert, t, 1) for t in batch.tolist())
    assert together.cost(together.fill, batch) < one_by_one / 3


def test_range_query_takes_logarithmically_many_combines() -> None:
    counted = Counted()
    counted.fill(np.arange(30_000))
    r = random.Random(1)
    for _ in range(100):
        since, until = sorted(r.sample(range(30_001), 2))
        assert counted.window.range_query(since, until) == (until - since,)
        assert counted.cost(counted.window.range_query, since, until) < 15 * 2 * math.log(30_000, 4)


def test_stored_partials() -> None:
    for times in ORDERS.values():
        window = Fiba(CASES["max"].operator)
        for t in times(2000):
            window.insert(t, 1.0)
        # Entries, and a node for every three at least.
        assert len(window) < window.stored <= len(window) * 4 / 3 + 2
