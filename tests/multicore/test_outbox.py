"""Rows that wait to be read, and readers that wait for them."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.tuning import tuning
from tests.waiting import PATIENCE, wait_until

ROWS = pa.table({"n": [1, 2, 3]})


def read(box: Outbox, wait: float) -> list[pa.Table]:
    found: list[pa.Table] = []
    box.read(wait, found)
    return found


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Outbox:
    monkeypatch.setattr(tuning, "handover", PATIENCE)
    lock = threading.RLock()
    return Outbox(lock, threading.Condition(lock))


def test_rows_are_handed_over_to_a_reader_who_sleeps(box: Outbox) -> None:
    found: list[pa.Table] = []
    reader = threading.Thread(target=lambda: box.read(PATIENCE, found))
    reader.start()
    wait_until(lambda: box._rows_come)
    box.put(ROWS, hand_over=True)
    assert box.rows == 0  # the reader has them
    reader.join()
    assert found == [ROWS]


def test_nobody_is_waited_for_where_nobody_sleeps(
    box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        box._rows_taken, "wait", lambda wait: pytest.fail("the reader is waited for")
    )
    box.put(ROWS, hand_over=True)
    assert box.rows == 3
    assert read(box, 0.0) == [ROWS]


def test_a_reader_who_was_interrupted_is_waited_for_only_once(
    box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(waiter: threading.Lock, seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(box._rows_come, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            box.read(1.0, [])
    box.put(ROWS, hand_over=False)
    monkeypatch.setattr(
        box._rows_taken, "wait", lambda wait: pytest.fail("the reader is waited for")
    )
    box.put(ROWS, hand_over=True)
    assert box.rows == 6


def test_rows_that_are_given_back_come_before_others(box: Outbox) -> None:
    box.put(ROWS, hand_over=False)
    found = read(box, 0.0)
    assert box.rows == 0
    box.put(ROWS.slice(1), hand_over=False)
    box.give_back(found)
    assert (box.rows, found) == (5, [])
    assert read(box, 0.0) == [pa.concat_tables([ROWS, ROWS.slice(1)])]


def test_a_failure_comes_behind_the_rows_before_it(box: Outbox) -> None:
    box.put(ROWS, hand_over=False)
    box.fail(OSError("no more room"))
    assert read(box, 0.0) == [ROWS]
    with pytest.raises(OSError, match="no more room"):
        read(box, 0.0)


def test_the_end_lets_a_reader_go_who_waits_for_ever(box: Outbox) -> None:
    box.finish()
    reader = threading.Thread(target=lambda: box.read(0.0, []))
    reader.start()
    wait_until(lambda: box._rows_come)
    box.end()
    reader.join(PATIENCE)
    assert not reader.is_alive()


def test_who_waits_for_room_is_told_when_a_full_box_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "most_unread", ROWS.num_rows)
    room_comes = threading.Condition(lock := threading.RLock())
    box = Outbox(lock, room_comes)
    box.put(ROWS, hand_over=False)
    assert box.full
    waiting = threading.Event()
    told: list[bool] = []

    def wait_for_room() -> None:
        with lock:
            waiting.set()
            told.append(room_comes.wait(PATIENCE))

    writer = threading.Thread(target=wait_for_room)
    writer.start()
    waiting.wait()
    assert read(box, 0.0) == [ROWS]  # the lock is free only once the writer waits
    writer.join()
    assert told == [True]
