"""Locks are taken in the order that `pump/__init__.py` states, so no two threads can deadlock."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import sys
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore import pump
from paneflow.engines.multicore.threads.interrupts import Waiters
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.support import HIVES, ONE_WORKER

STATED = re.findall(r"^\d+\. `(\w+)`", pump.__doc__ or "", re.MULTILINE)
"""The classes whose objects have a lock, in the order in which locks may be taken."""

reciprocals = A.define(
    lift=lambda x: 1 / x,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    samples=[1.0, 2.0],
)


class Recorder:
    """Which locks were taken while which others were held, by the classes that have them."""

    def __init__(self) -> None:
        self.pairs: set[tuple[str, str]] = set()
        self.asleep: set[str] = set()
        """Whose locks were held by a thread that went to sleep."""
        self._of_thread = threading.local()

    @property
    def held(self) -> list[RecordedLock]:
        held: list[RecordedLock] = self._of_thread.__dict__.setdefault("held", [])
        return held

    def note(self, lock: RecordedLock) -> None:
        self.pairs |= {(other.owner, lock.owner) for other in self.held if other is not lock}


class RecordedLock:
    """A lock of the engine, plain or reentrant."""

    def __init__(self, recorder: Recorder, owner: str, lock: Any) -> None:
        self._recorder = recorder
        self._lock = lock
        self.owner = owner

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._recorder.note(self)
        taken: bool = self._lock.acquire(blocking, timeout)
        if taken:
            self._recorder.held.append(self)
        return taken

    def release(self) -> None:
        self._lock.release()
        self._recorder.held.remove(self)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    # What a condition asks of its lock.

    def _is_owned(self) -> bool:
        return self in self._recorder.held

    def _release_save(self) -> Any:
        held = self._recorder.held
        several = held.count(self)
        held[:] = [lock for lock in held if lock is not self]
        self._recorder.asleep |= {lock.owner for lock in held}
        return several, self._lock._release_save()

    def _acquire_restore(self, saved: Any) -> None:
        several, state = saved
        self._lock._acquire_restore(state)
        self._recorder.held.extend([self] * several)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Records the locks that the engine makes from now on."""
    recorder = Recorder()

    def recorded(make: Any) -> Any:
        def made() -> Any:
            code = sys._getframe(1).f_code
            owner = code.co_qualname.split(".")[0]
            # A sleeping thread's own lock is released by another thread: it orders nothing.
            if "engines/multicore" not in code.co_filename or owner == Waiters.__name__:
                return make()
            return RecordedLock(recorder, owner, make())

        return made

    sleep = Waiters.sleep

    def noted(self: Waiters, *arguments: Any) -> None:
        recorder.asleep |= {lock.owner for lock in recorder.held}
        sleep(self, *arguments)

    monkeypatch.setattr(threading, "Lock", recorded(threading.Lock))
    monkeypatch.setattr(threading, "RLock", recorded(threading.RLock))
    monkeypatch.setattr(Waiters, "sleep", noted)
    monkeypatch.setattr(tuning, "most_unread", 64)
    return recorder


def live_through(r: random.Random, strategy: str, fails: bool) -> None:
    """Run a stream with two pushers and a reader; it is finished, only closed, or fails."""
    aggregate = reciprocals("v") if fails else A.sum("v")
    query = pf.Query(W.sliding(20, 5), {"a": aggregate}, key="k", time="t", lateness=3)
    over = threading.Event()
    with query.open(workers=3, strategy=strategy, sources=2) as stream:

        def push(source: int, seed: int) -> None:
            mine = random.Random(seed)
            t = 0
            with contextlib.suppress(pf.PaneflowError):
                for _ in range(60):
                    n = mine.choice([1, 5, 40])
                    v = np.where(np.arange(n) % 40 == 39, 0.0 if fails else 1.0, 1.0)
                    rows = {"t": np.arange(t, t + n) // 2, "k": np.arange(n) % 3, "v": v}
                    stream.push(pa.table(rows), source)
                    t += n
                stream.end_source(source)

        def read() -> None:
            with contextlib.suppress(pf.PaneflowError):
                while not over.is_set():
                    for _ in stream.results(0.01):
                        pass

        pushers = [threading.Thread(target=push, args=(k, r.random())) for k in range(2)]
        reader = threading.Thread(target=read)
        for thread in (*pushers, reader):
            thread.start()
        for thread in pushers:
            thread.join()
        stream.metrics()
        if r.random() < 0.7:
            with contextlib.suppress(pf.PaneflowError):
                stream.finish()
        over.set()
        reader.join()


LIVES = [
    *itertools.product(("pane_line", "round_robin", "hash_once"), (False, True), (0.0, 1.0)),
    *itertools.product((*ONE_WORKER, "active", "agnostic"), (False, True), (0.0,)),
    *itertools.product(("slices", *HIVES), (False, True), (0.0, 1.0)),
]
"""Strategy, whether it fails, and up to which length messages are short."""


def test_locks_are_taken_in_the_stated_order(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(5)
    for strategy, fails, short in LIVES:
        monkeypatch.setattr(tuning, "short_message", short)
        live_through(r, strategy, fails)
    assert {name for pair in recorder.pairs for name in pair} <= set(STATED)
    for held, taken in recorder.pairs:
        assert STATED.index(held) < STATED.index(taken), f"{taken} while holding {held}"
    # Otherwise the streams above have not come to where locks are taken.
    assert {("Stream", "Shared"), ("Turns", "Shared"), ("Turns", "Unit")} <= recorder.pairs
    assert {("Unit", "Gathering"), ("Unit", "Schedule"), ("Unit", "Crew")} <= recorder.pairs
    assert recorder.asleep <= {"Turns"}
