"""W-Hive gives out each winset once, in order, when every writer has passed it, with all events."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator

import pytest

import paneflow as pf
from paneflow import windows as W
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.multiway.hive_model import HiveModel
from tests.multicore.multiway.hives import SummingHive

WINDOWS = (
    *(W.tumbling(5), W.sliding(6, 2), W.sliding(7, 3, offset=-1), W.sliding(2, 5)),
    W.sliding(40, 1),
)


@pytest.fixture
def little_memory() -> Iterator[None]:
    """So little that places must be used again and again."""
    before = tuning.most_winsets, tuning.most_tables, tuning.most_slots, tuning.pairs
    tuning.most_winsets, tuning.most_tables, tuning.most_slots = 200, 2000, 2**18
    tuning.pairs = 16
    yield
    tuning.most_winsets, tuning.most_tables, tuning.most_slots, tuning.pairs = before


@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_one_thread_finds_what_a_dictionary_holds(
    window: W.Window, slices: bool, little_memory: None
) -> None:
    assert isinstance(window, W.Sliding)
    for seed in range(30):
        r = random.Random(f"{window} {slices} {seed}")
        writers = r.randint(1, 5)
        hive, model = SummingHive(window, writers, slices), HiveModel(writers)
        now = [r.randint(-50, 50) for _ in range(writers)]
        keys = r.choice([1, 3, 60])
        for _ in range(r.choice([10, 150])):
            w = r.randrange(writers)
            events = []
            for _ in range(r.choice([0, 1, 2, 30])):
                # Times go up and down, but not before what the writer has passed.
                t = now[w] + r.choice([0, 0, 1, 2, 9])
                events.append((r.randrange(keys), t, r.randint(-(2**40), 2**40)))
            hive.update(w, *map(list, zip(*events, strict=True)) if events else ([], [], []))
            for key, t, value in events:
                model.update(hive.winsets(t), key, value)
            now[w] = min(
                [
                    now[w] + 15,
                    *(now[k] + 20 for k in range(writers)),
                    max([now[w], *(t for _, t, _ in events)]),
                ]
            )
            hive.hive.passes(w, hive.first(now[w]))
            model.passes(w, hive.first(now[w]))
            if r.random() < 0.5:
                most = r.choice([1, 3, AFTER_ALL])
                assert hive.next_winsets(most) == model.next_winsets(most)
        for w in range(writers):
            hive.hive.passes(w, AFTER_ALL)
            model.passes(w, AFTER_ALL)
        assert hive.next_winsets() == model.next_winsets()
        assert hive.next_winsets() == {}


def test_times_far_apart_take_no_more_room(little_memory: None) -> None:
    hive = SummingHive(W.sliding(10, 5), 1, slices=False)
    for k in range(1000):
        hive.update(0, [7], [k * 10**14], [k])
        hive.hive.passes(0, hive.first(k * 10**14))
        found = hive.next_winsets()
        assert len(found) == (2 if k else 0)


def test_a_table_grows_with_its_keys() -> None:
    hive = SummingHive(W.tumbling(10), 2, slices=False)
    keys = list(range(3000))
    for writer in (0, 1):
        hive.update(writer, keys, [3] * len(keys), keys)
        hive.hive.passes(writer, 10)
    assert hive.next_winsets() == {(0, key): (2, 2 * key) for key in keys}


def test_lanes_of_their_own_hold_each_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    keys = list(range(2 * tuning.apart_keys))
    hive = SummingHive(W.tumbling(10), 5, slices=False)
    for writer in range(5):
        hive.update(writer, keys, [3] * len(keys), keys)
    cells = [lane.fields[0] for lane in hive.hive._lanes]
    assert [int((held > 0).sum()) for held in cells] == [len(keys) // 2] * 2 + [0] * 3
    for writer in range(5):
        hive.hive.passes(writer, 10)
    assert hive.next_winsets() == {(0, key): (5, 5 * key) for key in keys}


@pytest.mark.parametrize("memory", ["most_winsets", "most_tables", "most_slots"])
def test_too_many_open_windows_are_refused_with_the_reason(memory: str) -> None:
    before = getattr(tuning, memory)
    setattr(tuning, memory, 64)
    try:
        hive = SummingHive(W.tumbling(1), 1, slices=False)
        with pytest.raises(pf.UnsupportedError, match="so many windows are open at a time"):
            hive.update(0, [0] * 100, list(range(100)), [1] * 100)
    finally:
        setattr(tuning, memory, before)


@pytest.fixture(params=["together", "apart"])
def keys_apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads update all keys of a batch at once, or one share of them after the other."""
    if request.param == "apart":
        monkeypatch.setattr(tuning, "apart_keys", 0)
        monkeypatch.setattr(tuning, "apart_events", 0)
        monkeypatch.setattr(tuning, "apart_looks", 1)


@pytest.mark.usefixtures("little_memory", "keys_apart")
@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_threads_lose_nothing_and_give_out_nothing_twice(slices: bool, seed: int) -> None:
    window = WINDOWS[seed % len(WINDOWS)]
    writers, batches, length = 2 + seed, 200, 20
    hive = SummingHive(window, writers, slices)
    model = HiveModel(writers)
    scripts = []
    for w in range(writers):
        r = random.Random(f"{seed} {w}")
        script = [
            [(r.randrange(40), b // 4 + r.randint(0, 1), r.randint(-9, 9)) for _ in range(length)]
            for b in range(batches)
        ]
        for batch in script:
            for key, t, value in batch:
                model.update(hive.winsets(t), key, value)
        scripts.append(script)
        model.passes(w, AFTER_ALL)
    failed: list[BaseException] = []

    def write(w: int) -> None:
        try:
            for b, batch in enumerate(scripts[w]):
                hive.update(w, *map(list, zip(*batch, strict=True)))
                hive.hive.passes(w, hive.first((b + 1) // 4))
            hive.hive.passes(w, AFTER_ALL)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)]
    for thread in threads:
        thread.start()
    found: dict[tuple[int, int], tuple[int, int]] = {}
    latest = -AFTER_ALL
    while any(thread.is_alive() for thread in threads):
        some = hive.next_winsets()
        assert all(number > latest for number, _ in some)
        latest = max([latest, *(number for number, _ in some)])
        assert not found.keys() & some.keys()
        found |= some
    found |= hive.next_winsets()
    assert not failed
    assert found == model.next_winsets()
