"""Active workers: which events each is sent, and which windows it has."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import Kind
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.front import Arrival, Front
from paneflow.engines.multicore.threads.ring import Bell
from paneflow.engines.multicore.topologies.handshake import Handshake
from paneflow.engines.multicore.workers.active import Active, MappingFunction, private
from paneflow.engines.multicore.workers.agnostic import Agnostic
from paneflow.engines.multicore.workers.farm import Farm
from tests.waiting import PATIENCE, wait_until

SOURCE = pa.schema([("t", pa.int64()), ("m", pa.bool_()), ("k", pa.int64())])


def arrived(t: list[int], marks: list[bool] | None = None, keys: list[int] | None = None) -> Batch:
    """Events as the front lets them go."""
    table = pa.table(
        {"t": t, "m": marks or [False] * len(t), "k": keys or [0] * len(t)}, schema=SOURCE
    )
    query = pf.Query(W.punctuation("m"), {"n": A.count()}, key="k", time="t")
    (batch,) = table.select(list(query.columns)).to_batches()
    front = Front(query, batch.schema, 1)
    events, _ = front.take([Arrival(0, batch, None, len(t), 0.0, due=True)])
    assert isinstance(events, Batch)
    return events


def sent(window: W.Window, workers: int, events: Batch) -> list[list[int]]:
    """For each worker the places of the events that it is sent."""
    masks = MappingFunction(window, workers).masks(events)
    everything = np.ones(len(events), np.bool_)
    return [np.flatnonzero(everything if m is None else m).tolist() for m in masks]


def test_the_example_of_figure_6() -> None:
    first, second = sent(W.count(4, 1), 2, arrived(list(range(8))))
    assert first == [0, 1, 2, 3, 4, 5, 6, 7]
    assert second == [1, 2, 3, 4, 5, 6, 7]  # event 0 is in window 0 alone


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 9])
@pytest.mark.parametrize(
    "window", [W.sliding(4, 1), W.sliding(7, 3, offset=1), W.tumbling(5), W.sliding(2, 5)], ids=str
)
def test_a_worker_is_sent_the_events_of_its_windows_and_no_others(
    window: W.Sliding, workers: int
) -> None:
    t = [-9, -3, 0, 0, 1, 4, 6, 7, 11, 12, 25]
    for worker, places in enumerate(sent(window, workers, arrived(t))):
        mine = [
            i for i, x in enumerate(t) if any(w % workers == worker for w in window.assigned(x))
        ]
        if window.range.value >= window.slide.value * workers:
            mine = list(range(len(t)))
        assert places == mine


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("window", [W.count(4, 1), W.count(3, 3), W.count(2, 5)], ids=str)
def test_positions_are_counted_by_key(window: W.Count, workers: int) -> None:
    keys = [0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]
    position = [keys[:i].count(k) for i, k in enumerate(keys)]
    for worker, places in enumerate(sent(window, workers, arrived(list(range(12)), keys=keys))):
        assert places == [
            i
            for i, p in enumerate(position)
            if any(
                w * window.slide <= p < w * window.slide + window.size
                for w in range(worker, 20, workers)
            )
        ]


def test_a_marked_event_goes_to_the_window_that_it_ends() -> None:
    marks = [False, True, False, False, True, True, False]
    assert sent(W.punctuation("m"), 2, arrived(list(range(7)), marks)) == [[0, 1, 5], [2, 3, 4, 6]]


@pytest.mark.parametrize(
    ("window", "slide"), [(W.count(4, 1), 3), (W.count(4, 2), 4), (W.sliding(4, 1), 3)], ids=str
)
def test_the_private_slide(window: W.Window, slide: int) -> None:
    seen = private(window, 2, 3)
    assert isinstance(seen, W.Count | W.Sliding)
    assert int(seen.slide) == slide


def test_windows_are_dealt_out_in_turn() -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    with query.open(workers=3, strategy="active") as stream:
        stream.push(pa.table({"t": np.arange(100)}))
        stream.finish()
        assert sum(rows.num_rows for rows in stream.results()) == 10
        units = stream.metrics().units
    assert [unit.results for unit in units] == [4, 3, 3]
    assert [unit.tuples for unit in units] == [40, 30, 30]


@pytest.mark.parametrize("model", [Active, Agnostic, Handshake])
def test_a_worker_that_is_stopped_as_it_begins_to_listen_ends(
    model: type[Farm | Handshake], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    strategy = model(query, {}, 1)
    crew = strategy._crew
    (worker,) = crew.units
    looks = itertools.count()
    rung = Bell.rung.fget  # type: ignore[attr-defined]

    def stops_between(bell: Bell) -> int:
        # The first look is that of the sleeper who wakes, the second when it begins to listen.
        if threading.current_thread() is worker.thread and next(looks) == 1:
            crew.stop()
        return int(rung(bell))

    wait_until(lambda: worker.bell.asleep)
    monkeypatch.setattr(Bell, "rung", property(stops_between))
    worker.bell.ring()
    worker.thread.join(PATIENCE)
    ended = not worker.thread.is_alive()
    crew.stop()
    worker.thread.join(PATIENCE)
    assert ended


@pytest.mark.parametrize(
    "window",
    [W.session(3), W.slide_by_tuple(3, 2), W.slide_by_time(3, 2), W.delta("t", 3, 1)],
    ids=str,
)
def test_windows_that_depend_on_later_events_are_refused(window: W.Window) -> None:
    query = pf.Query(window, {"n": A.count()}, time="t")
    assert "forward-context aware" in (Active.refuses(query, {"t": Kind.INTEGER}) or "")
    with pytest.raises(pf.UnsupportedError, match=r"forward-context aware.*use 'agnostic'"):
        query.open(workers=2, strategy="active")
