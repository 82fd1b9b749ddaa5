"""How a topology ends: finished, stopped, dropped, or by an exception in one of its PUs."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.contract import Strategy
from paneflow.engines.multicore.topologies.topology import under_way
from tests.multicore.support import TOPOLOGIES, Fed, expected, random_pauses, run, threads
from tests.properties.compare import assert_same_rows
from tests.waiting import PATIENCE, comes_to_rest, wait_until

QUERY = pf.Query(W.sliding(6, 2), {"sum": A.sum("v")}, key="k", time="t")


def stream(n: int = 100) -> Fed:
    table = pa.table({"t": np.arange(n), "k": np.arange(n) % 3, "v": np.ones(n, np.int64)})
    return Fed(QUERY, table)


@pytest.fixture(autouse=True)
def leaves_no_thread() -> object:
    yield
    wait_until(lambda: not threads())


def reciprocal(x: float) -> float:
    return 1 / (x - 3)


def shifted(p: float) -> float:
    return 1 / (p - 3)


def never_three(x: float) -> float:
    if x == 3:
        raise LookupError(f"three is not welcome: {[x]}")
    return x


in_lift = A.define(
    lift=reciprocal,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    samples=[1.0, 2.0],
)
in_combine = A.define(
    lift=lambda x: x,
    combine=lambda a, b: shifted(b) * 0.0 + a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    samples=[1.0, 2.0],
)
in_lower = A.define(
    lift=lambda x: x,
    combine=lambda a, b: min(a, b),
    lower=shifted,
    identity=100.0,
    commutative=True,
    samples=[1.0, 2.0],
)
in_python = A.define(
    lift=never_three,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    samples=[1.0, 2.0],
)
FAILING = {
    "lift": (in_lift, "reciprocal", ZeroDivisionError),
    "combine": (in_combine, "shifted", ZeroDivisionError),
    "lower": (in_lower, "shifted", ZeroDivisionError),
    "python": (in_python, "never_three", LookupError),
}


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.defined.SlowAggregateWarning")
@pytest.mark.parametrize("where", FAILING)
@pytest.mark.parametrize(("workers", "watermarks"), [(1, True), (4, True), (4, False)])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_users_exception_names_its_unit_and_keeps_what_was_final(
    name: str, workers: int, watermarks: bool, where: str
) -> None:
    aggregate, function, kind = FAILING[where]
    query = pf.Query(W.tumbling(10), {"a": aggregate("v")}, time="t")
    values = np.full(60, 50.0)
    values[44] = 3.0
    fed = Fed(query, pa.table({"t": np.arange(60), "v": values}))
    running = TOPOLOGIES[name](query, fed.kinds, workers, random_pauses(workers))
    with pytest.raises(pf.PaneflowError, match=f"processing unit . of {workers}") as caught:
        for batch in fed.batches(list(range(5, 60, 5))):
            running.feed(batch)
            if watermarks:
                running.advance(int(batch.t[-1]))
        running.finish()
    shown = "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value.__cause__, kind)
    assert f"in {function}" in shown
    # The failure is met with the batch from 40 on; by `lower`, with the one that ends its window.
    before = 50 if where == "lower" else 40
    final = expected(query, fed.table.slice(0, 40))
    final = final.filter(pc.less(final["end"], before))
    assert fed.rows(running.take()).to_pylist() == final.to_pylist()
    with pytest.raises(pf.PaneflowError, match="processing unit"):
        running.advance(1000)
    running.stop()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_which_rows_come_before_a_failure_does_not_depend_on_who_is_slow(name: str) -> None:
    query = pf.Query(W.tumbling(10), {"a": in_lift("v")}, key="k", time="t")
    values = np.full(90, 50.0)
    values[64] = 3.0
    table = pa.table({"t": np.arange(90), "k": np.arange(90) % 4, "v": values})
    final = expected(query, table.slice(0, 60))
    final = final.filter(pc.less(final["end"], 60))
    for seed in range(12):
        fed = Fed(query, table)
        running = TOPOLOGIES[name](query, fed.kinds, 2 + seed % 5, random_pauses(seed))
        with pytest.raises(pf.PaneflowError, match="processing unit"):
            for batch in fed.batches(list(range(5, 90, 5))):
                running.feed(batch)
            running.finish()
        assert_same_rows(query, fed.rows(running.take()), final)
        running.stop()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_failure_is_told_although_nothing_has_followed_it(name: str) -> None:
    # Every unit has some of the windows that the failing event belongs to.
    query = pf.Query(W.sliding(400, 10), {"a": in_lift("v")}, time="t")
    fed = Fed(query, pa.table({"t": np.arange(20), "v": np.append(np.full(19, 5.0), 3.0)}))
    running = TOPOLOGIES[name](query, fed.kinds, 5)
    for batch in fed.batches([4, 8, 12]):
        running.feed(batch)
    time.sleep(0.2)
    told = []

    def go_on() -> None:
        try:
            running.advance(30)
            running.finish()
        except pf.PaneflowError as error:
            told.append(error)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    in_time = not thread.is_alive()
    running.stop()
    assert in_time
    assert "processing unit" in str(told[0])


@pytest.mark.parametrize("name", BY_NAME)
def test_a_failure_is_raised_where_feeding_goes_on(name: str) -> None:
    query = pf.Query(W.tumbling(10), {"a": in_lift("v")}, time="t")
    fed = Fed(query, pa.table({"t": np.arange(3000), "v": np.full(3000, 3.0)}))
    running = BY_NAME[name](query, fed.kinds, 5)
    with pytest.raises(pf.PaneflowError, match="ZeroDivisionError"):
        for batch in fed.batches(list(range(1, 3000))):
            running.feed(batch)
            running.advance(int(batch.t[-1]))
    running.stop()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_finished_strategy_has_no_threads(name: str) -> None:
    run(BY_NAME[name], stream(), 4, [10, 20])
    assert not threads()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_strategy_can_be_stopped_at_any_time_and_again(name: str) -> None:
    fed = stream()
    running = BY_NAME[name](QUERY, fed.kinds, 4, random_pauses(1))
    for batch in fed.batches([30, 60]):
        running.feed(batch)
    running.stop()
    assert not threads()
    running.stop()
    with pytest.raises(pf.PaneflowError, match="stopped"):
        running.finish()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_dropped_topology_ends_its_threads(name: str) -> None:
    fed = stream()
    running: Strategy | None = TOPOLOGIES[name](QUERY, fed.kinds, 4)
    assert running is not None
    for batch in fed.batches([30]):
        running.feed(batch)
    assert len(threads()) == 4
    running = None
    gc.collect()
    wait_until(lambda: not threads())


@pytest.mark.parametrize("name", BY_NAME)
def test_an_idle_strategy_burns_no_core(name: str) -> None:
    fed = stream()
    running = BY_NAME[name](QUERY, fed.kinds, 6)
    for batch in fed.batches([30]):
        running.feed(batch)
    assert comes_to_rest()
    running.stop()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_slow_unit_holds_up_the_feeder(name: str) -> None:
    go = threading.Event()

    def wait_at_last(rank: int) -> None:
        if rank == 2:
            go.wait()

    fed = stream(1000)
    running = TOPOLOGIES[name](QUERY, fed.kinds, 3, wait_at_last)
    fed_so_far = []

    def feed() -> None:
        for batch in fed.batches(list(range(1, 1000, 2))):
            running.feed(batch)
            fed_so_far.append(len(batch))
        running.finish()

    feeder = threading.Thread(target=feed)
    feeder.start()
    time.sleep(0.3)
    assert len(fed_so_far) <= under_way(3)
    assert max(unit.depth for unit in running.metrics()) <= under_way(3) * 3
    go.set()
    feeder.join()
    assert fed.rows(running.take()).to_pylist() == expected(QUERY, fed.table).to_pylist()


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3, 0, 1, 2, 3], [3, 2, 1, 0, 3, 2, 1, 0]])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_units_held_up_one_after_another_overfill_no_ring(name: str, ranks: list[int]) -> None:
    # Each unit gathers what the one before it has been late with, as far as the feeder lets it.
    gates = [threading.Event() for _ in range(4)]
    fed = stream(1600)
    running = TOPOLOGIES[name](QUERY, fed.kinds, 4, lambda rank: gates[rank].wait() and None)
    fed_so_far = [0]

    def feed() -> None:
        for batch in fed.batches(list(range(1, 1600, 2))):
            running.feed(batch)
            fed_so_far[0] += 1
        running.finish()

    def let_feeder_come_to_a_stop() -> None:
        before = -1
        while fed_so_far[0] != before:
            before = fed_so_far[0]
            time.sleep(0.02)

    for gate in gates:
        gate.set()
    gates[ranks[0]].clear()
    feeder = threading.Thread(target=feed)
    feeder.start()
    for held, following in itertools.pairwise(ranks):
        let_feeder_come_to_a_stop()
        gates[following].clear()
        gates[held].set()
    let_feeder_come_to_a_stop()
    gates[ranks[-1]].set()
    feeder.join()
    assert fed.rows(running.take()).to_pylist() == expected(QUERY, fed.table).to_pylist()
