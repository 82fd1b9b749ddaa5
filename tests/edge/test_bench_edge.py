"""The benches of the edge tree run, and what they count is right. Sizes are tiny."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench import edge, report
from bench.edge import child, children, latency, root, simulation, traffic
from bench.edge.counted import CountedTree, levels
from bench.edge.pacing import Paced
from bench.edge.simulated.costs import Costs, Line
from bench.edge.simulated.links import NEARBY, PACKET, Link
from bench.edge.simulated.logic import Fitted, Real, random_of
from bench.edge.simulated.scenario import Scenario
from bench.edge.simulated.world import World
from bench.edge.stream import BEGIN, Feed, asked
from paneflow import windows as W
from paneflow.engines.edge.question import COMPLETE, Question

pytestmark = pytest.mark.bench

FREE = Line([1, 2], [0.0, 0.0])
COSTS = Costs(FREE, FREE, FREE, 0.0, 0.0, (85, 289, 1_651, 14_630), FREE, FREE)
LOSSY = Link("lossy", 0.01, 0.1, 1e6, 0.2)


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "PICTURES", tmp_path)
    return tmp_path


def test_batches_follow_each_other_at_the_rate_of_the_feed() -> None:
    feed = Feed(100, 1_000, keys=3)
    batches = [feed.batch(number) for number in range(12)]
    times = pa.concat_tables(batches)["ts"].cast(pa.int64()).to_numpy()
    assert np.array_equal(np.diff(times), np.full(1_199, 1_000))
    assert times[0] == BEGIN
    assert batches[0]["v"] != batches[1]["v"] and batches[0]["v"] == batches[8]["v"]
    assert set(batches[0]["key"].to_pylist()) == {0, 1, 2}


@pytest.mark.parametrize("aggregate", ["max", "avg", "median"])
def test_counted_trees_give_the_rows_of_all_events(aggregate: str) -> None:
    feeds = [Feed(100, 200, seed=seed) for seed in range(2)]
    query = asked(aggregate)
    tree = CountedTree(Question(query, feeds[0].schema), levels(4, 2))
    pushed = []
    for number in range(6):
        for leaf, feed in zip(tree.leaves, feeds, strict=True):
            pushed.append(feed.batch(number))
            tree.push(leaf, pushed[-1])
        tree.settle()
    tree.close()
    rows = pa.concat_tables(tree.rows)
    right = query.over(pa.concat_tables(pushed).sort_by("ts"))
    assert rows[COMPLETE].to_pylist() == [True, True, True]
    assert rows["x"].to_pylist() == pytest.approx(right["x"].to_pylist())
    by_level: dict[int, int] = {}
    for name, size in tree.up.items():
        by_level[tree.level(name)] = by_level.get(tree.level(name), 0) + size
    assert list(by_level) == [0, 1, 2]
    if aggregate != "median":
        assert len(set(by_level.values())) == 1
    assert set(tree.seconds) == {*tree.nodes}


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_little_travels_for_count_windows(size: int) -> None:
    question = Question(asked("max", windows=W.count(size)), Feed(1, 1).schema)
    tree = CountedTree(question, levels(2, traffic.CHILDREN))
    batches, length = 5, 25_000
    feeds = {leaf: Feed(length, 5 * length, seed=k) for k, leaf in enumerate(tree.leaves)}
    for number in range(batches):
        for leaf, feed in feeds.items():
            tree.push(leaf, feed.batch(number))
        tree.settle()
    tree.close()
    events = len(feeds) * batches * length
    assert sum(rows.num_rows for rows in tree.rows) == events // size
    travelled = sum(tree.up.values()) + sum(tree.down.values())
    assert travelled < 0.02 * events * traffic.EVENT_BYTES


def test_centralised_trees_send_all_events_on_every_level() -> None:
    schema = Feed(1, 1).schema
    raw = traffic.by_level(Question(traffic.CENTRALISED, schema), 16_000, 2)
    few = traffic.by_level(Question(asked("max"), schema), 16_000, 2)
    assert all(8 * 16_000 < size < 16 * 16_000 + 20_000 for size in raw)
    assert all(size < 10_000 for size in few)


def test_a_load_is_sustainable_if_the_queue_does_not_grow() -> None:
    paced = Paced(Feed(1, 1), None, seconds=3.0)  # type: ignore[arg-type]
    assert not paced.sustainable, "nothing was sent at all"
    paced.backlog = [(second, 3) for second in np.arange(0, 3, 0.1)]
    assert paced.sustainable
    paced.backlog = [(second, int(100 * second)) for second in np.arange(0, 3, 0.1)]
    assert not paced.sustainable


@pytest.mark.parametrize(("count", "fan_out"), [(1, 2), (7, 3), (30, 5), (9, 100)])
@pytest.mark.parametrize("link", [NEARBY, LOSSY])
def test_simulated_trees_say_what_real_machines_say(count: int, fan_out: int, link: Link) -> None:
    scenario = Scenario(count, fan_out, (link, link), windows=4, slices=2)
    real = Real(scenario)
    seen = World(scenario, real, COSTS, random_of(3)).run()
    assert real.rows == 8
    fitted = World(scenario, Fitted(scenario, COSTS), COSTS, random_of(3)).run()
    assert fitted.latencies == pytest.approx(seen.latencies, abs=0.05)
    assert sum(fitted.sizes) == pytest.approx(sum(seen.sizes), rel=0.2)


def test_every_level_of_a_simulated_tree_waits_before_it_speaks() -> None:
    still = Link("still", 0.01, 0.0, 1e9, 0.0)
    for count, height in ((3, 2), (9, 3), (27, 4)):
        scenario = Scenario(count, 3, (still, still), chunk=0.0, skew=0.0)
        outcome = World(scenario, Fitted(scenario, COSTS), COSTS, random_of(1)).run()
        assert scenario.height == height
        expected = height * scenario.linger + (height - 1) * still.latency
        assert outcome.latencies == pytest.approx(np.full(5, expected), abs=1e-4)


def test_work_takes_time_in_the_simulation() -> None:
    still = Link("still", 0.0, 0.0, 1e12, 0.0)
    scenario = Scenario(50, 50, (still, still), chunk=0.0, skew=0.0)
    report_cost = Line([1, 2], [0.004, 0.004])
    costs = Costs(report_cost, FREE, FREE, 0.0, 0.0, COSTS.sizes, FREE, FREE)
    outcome = World(scenario, Fitted(scenario, costs), costs, random_of(1)).run()
    assert outcome.busy == [pytest.approx(50 * 0.004)]
    assert outcome.latencies == pytest.approx(np.full(5, 50 * 0.004 + 2 * 0.02), abs=1e-3)


def test_lost_packets_are_sent_again_and_keep_others_waiting() -> None:
    sizes = np.full(10_000, PACKET)
    delays, packets = LOSSY.delays(sizes, np.random.default_rng(1))
    assert packets / 10_000 == pytest.approx(1.2, abs=0.02)
    assert np.mean(delays > 0.2) == pytest.approx(0.2, abs=0.02)
    assert np.mean(delays > 0.6) == pytest.approx(0.04, abs=0.01)


def test_fan_outs_make_levels() -> None:
    scenario = Scenario(100, 10, (NEARBY, NEARBY))
    assert scenario.levels == [100, 10, 1]
    assert [len(scenario.below(1, k)) for k in range(10)] == [10] * 10
    uneven = Scenario(11, 4, (NEARBY, NEARBY))
    assert uneven.levels == [11, 3, 1]
    covered = [range_ for k in range(3) for range_ in [uneven.below(1, k)]]
    assert covered[0].start == 0 and covered[-1].stop == 11
    assert all(one.stop == other.start for one, other in pairwise(covered))


@pytest.mark.processes
@pytest.mark.long
@pytest.mark.parametrize("part", edge.PARTS)
def test_every_part_runs_and_draws(
    part: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LENGTHS", (2_000,))
    monkeypatch.setattr(child, "KEYS", (1,))
    monkeypatch.setattr(child, "WINDOWS", (1, 5))
    monkeypatch.setattr(child, "SECONDS", 0.02)
    monkeypatch.setattr(children, "CHILDREN", (1,))
    monkeypatch.setattr(children, "SECONDS", 0.1)
    monkeypatch.setattr(latency, "SETUPS", (latency.Setup(1),))
    monkeypatch.setattr(latency, "STEPS", (0.01,))
    monkeypatch.setattr(root, "CHILDREN", (1, 2))
    monkeypatch.setattr(root, "REPORTS", {1: 5, 100: 4})
    monkeypatch.setattr(traffic, "EVENTS", 8_000_000)
    monkeypatch.setattr(simulation, "NODES", (20,))
    monkeypatch.setattr(simulation, "FAN_OUTS", (10,))
    monkeypatch.setattr(simulation, "PROCESSES", ((2, 2),))
    figures, sheets = edge.PARTS[part].run(True)
    assert all(sheet.markdown() for sheet in sheets)
    edge.PARTS[part].draw(figures)
    assert (results / f"edge-{part}.svg").exists()
