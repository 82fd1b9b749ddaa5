"""Streams that are interrupted at random moments: run by `test_interrupts.py`, in its own process.

Another thread sends SIGINT to the process all the time. The handler lets one of them through for
each call that is tried, so that the bookkeeping here is never interrupted itself.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.stream import Stream

QUERY = pf.Query(W.tumbling(10), {"n": A.count(), "sum": A.sum("v")}, key="k", time="t")
KEYS = 3
HANGS = 600
"""Seconds after which the traceback of all threads is shown, and the process ends."""


def threads() -> list[str]:
    """The streams' threads that run now."""
    names = (thread.name for thread in threading.enumerate())
    return [n for n in names if n.startswith("paneflow-") and not n.startswith("paneflow-scatter")]


def gone() -> bool:
    """Whether all threads of streams end within a while."""
    until = time.monotonic() + 120
    while threads() and time.monotonic() < until:
        time.sleep(0.005)
    return not threads()


class Interrupts:
    """SIGINT, again and again."""

    def __init__(self, r: random.Random) -> None:
        self.raised = 0
        self._random = r
        self._armed = False
        self._over = False
        signal.signal(signal.SIGINT, self._handle)
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def stop(self) -> None:
        self._armed = False
        self._over = True
        self._thread.join()

    def tried(self, call: Callable[[], object]) -> bool:
        """Whether a call returned; if not, it was interrupted."""
        try:
            self._armed = True
            call()
            self._armed = False
            return True
        except KeyboardInterrupt:
            return False

    def insist(self, call: Callable[[], object]) -> None:
        """Call until it returns."""
        while not self.tried(call):
            pass

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            self.raised += 1
            raise KeyboardInterrupt

    def _send(self) -> None:
        while not self._over:
            time.sleep(self._random.choice([0.0, 0.0001, 0.001, 0.003]) * self._random.random())
            os.kill(os.getpid(), signal.SIGINT)


class Session:
    """A stream in which every push makes the windows of one moment, and what became of each."""

    def __init__(self, stream: Stream, interrupts: Interrupts, r: random.Random) -> None:
        self.stream = stream
        self.sizes: list[int] = []
        self.returned: set[int] = set()
        self.rows: list[pa.Table] = []
        self._interrupts = interrupts
        self._random = r

    def push(self) -> None:
        n = self._random.choice([KEYS, KEYS, KEYS, 30, 30, 3000, 30_000])
        number = len(self.sizes)
        t = np.sort(np.arange(n) % 10) + 10 * number
        batch = pa.record_batch({"t": t, "k": np.arange(n) % KEYS, "v": np.full(n, number)})
        self.sizes.append(n)
        if self._interrupts.tried(lambda: self.stream.push(batch)):
            self.returned.add(number)

    def read(self) -> bool:
        """Whether no more rows were found."""

        def go_on() -> None:
            for rows in self.stream.results(self._random.choice([0.0, 0.0, 0.001])):
                self.rows.append(rows)

        return self._interrupts.tried(go_on)

    def check(self, complete: bool) -> None:
        """A push is in it wholly or not at all; if it returned, it is in it."""
        rows = [row for table in self.rows for row in table.to_pylist()]
        numbers = [(row["end"] // 10 - 1, row["k"]) for row in rows]
        assert numbers == sorted(set(numbers)), "rows twice, or out of order"
        for row, (number, _) in zip(rows, numbers, strict=True):
            n = self.sizes[number]
            assert (row["n"], row["sum"]) == (n // KEYS, n // KEYS * number), row
        seen = {number for number, _ in numbers}
        assert len(numbers) == KEYS * len(seen), "a push that is half there"
        until = len(self.sizes) if complete else max(seen, default=-1)
        missing = {number for number in self.returned if number < until} - seen
        assert not missing, f"pushes that returned are missing: {missing}"


def until_the_end(stream: Stream, interrupts: Interrupts, r: random.Random) -> None:
    """Interrupts come to every call; the stream goes on, and gives all its rows."""
    session = Session(stream, interrupts, r)
    with stream:
        for _ in range(r.randrange(1, 60)):
            session.push()
            if r.random() < 0.5:
                session.read()
        interrupts.insist(stream.finish)
        while not session.read():
            pass
        interrupts.insist(stream.close)
        assert gone(), "threads after close"
    session.check(complete=True)


def out_of_the_block(stream: Stream, interrupts: Interrupts, r: random.Random) -> None:
    """The first interrupt after some calls leaves the block, and all threads end."""
    session = Session(stream, interrupts, r)

    def block() -> None:
        with stream:
            for _ in range(r.randrange(1, 10)):
                session.push()
            interrupts._armed = True
            for number in range(10_000):
                t = 10 * (len(session.sizes) + number)
                stream.push(pa.record_batch({"t": [t], "k": [0], "v": [0]}))
                for rows in stream.results():
                    session.rows.append(rows)

    interrupts.tried(block)
    del block
    known = 10 * len(session.sizes)
    session.rows = [rows.filter(pc.less_equal(rows["end"], known)) for rows in session.rows]
    session.check(complete=False)


def main(strategies: list[str], workers: int, most: int, seed: int) -> None:
    """Interrupt streams of each strategy so often."""
    faulthandler.dump_traceback_later(HANGS, exit=True)
    r = random.Random(seed)
    interrupts = Interrupts(r)
    try:
        for strategy in strategies:
            before = interrupts.raised
            while interrupts.raised - before < most:
                ways = r.choice([until_the_end, until_the_end, out_of_the_block])
                ways(QUERY.open(workers=workers, strategy=strategy), interrupts, r)
                assert gone(), f"threads are left: {threads()}"
            print(strategy, interrupts.raised - before, flush=True)
    finally:
        interrupts.stop()


if __name__ == "__main__":
    main(sys.argv[1].split(","), *map(int, sys.argv[2:]))
