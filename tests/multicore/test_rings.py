"""Rings, bells and the counters under them, between real threads."""

from __future__ import annotations

import threading
import time

import numba
import numpy as np
import pytest

from paneflow.engines.multicore.threads.ring import Bell, Ring
from paneflow.merging.machine.atomics import add, exchange, observe
from tests.waiting import PATIENCE

compiled = numba.njit(nogil=True)


@compiled
def add_often(cells, n):  # type: ignore[no-untyped-def]
    for _ in range(n):
        add(cells, 0, 3)
        observe(cells, 0)  # or a compiler may make one step of them all, were it allowed to


@compiled
def exchange_often(cells, n):  # type: ignore[no-untyped-def]
    for _ in range(n):
        seen = observe(cells, 0)
        while not exchange(cells, 0, seen, seen + 3):
            seen = observe(cells, 0)


@pytest.mark.parametrize(
    ("raise_often", "n"),
    [(add_often, 10_000_000), (exchange_often, 200_000), (add_often.py_func, 10_000)],
)
def test_no_step_of_a_shared_counter_is_lost(raise_often, n: int) -> None:  # type: ignore[no-untyped-def]
    cells = np.zeros(1, np.int64)
    raise_often(cells, 0)
    together = threading.Barrier(4)

    def run() -> None:
        together.wait()
        raise_often(cells, n)

    several = [threading.Thread(target=run) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert cells[0] == 4 * n * 3


def test_add_tells_what_was_before_and_exchange_whether_it_happened() -> None:
    @compiled
    def both(cells):  # type: ignore[no-untyped-def]
        return add(cells, 1, 5), exchange(cells, 1, 5, 7), exchange(cells, 1, 5, 9)

    for function in (both, both.py_func):
        cells = np.zeros(2, np.int64)
        assert function(cells) == (0, True, False)
        assert cells.tolist() == [0, 7]


def test_a_ring_keeps_order_and_refuses_more_than_it_holds() -> None:
    ring: Ring[int] = Ring(3, Bell())
    assert ring.take() is None
    assert ring.head is None
    for number in (1, 2, 3):
        ring.put(number)
    assert ring.full
    with pytest.raises(RuntimeError, match="3 places is full"):
        ring.put(4)
    assert ring.head == 1
    assert [ring.take(), ring.take()] == [1, 2]
    ring.put(5)
    assert [ring.take(), ring.take(), ring.take()] == [3, 5, None]


def test_messages_cross_between_threads_in_order_and_none_is_lost() -> None:
    n = 20_000
    reader, writer = Bell(), Bell()
    ring: Ring[int] = Ring(7, reader)
    got: list[int] = []

    def read() -> None:
        while len(got) < n:
            heard = reader.rung
            message = ring.take()
            if message is None:
                reader.wait(heard)
            else:
                got.append(message)
                writer.ring()

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(n):
        while True:
            heard = writer.rung
            if not ring.full:
                break
            writer.wait(heard)
        ring.put(number)
    thread.join()
    assert got == list(range(n))


def test_a_bell_wakes_who_sleeps_and_does_not_forget_who_came_late() -> None:
    bell = Bell()
    heard = bell.rung
    bell.ring()
    bell.wait(heard)  # rung before: does not sleep
    heard = bell.rung
    woken = threading.Event()

    def sleep() -> None:
        bell.wait(heard)
        woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    time.sleep(0.05)
    assert not woken.is_set()
    bell.ring()
    thread.join(PATIENCE)
    assert woken.is_set()
