"""What threads do and see that work on a W-Hive at the same time, without the interpreter lock.

A thread's whole script is one compiled call. Each thread begins its next operation when all have
come to theirs. The clock is a counter that every operation raises as it begins and as it ends.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.multiway.hive_loops import (
    Bounds,
    Events,
    Own,
    Pairs,
    Released,
    Retired,
    final_slots,
    pass_on,
    place,
    release,
)
from paneflow.engines.multicore.multiway.hive_memory import LINE, room_for
from paneflow.merging.machine.atomics import add, breathe, observe
from paneflow.slicing.ends import first_open
from paneflow.windows import Sliding
from tests.multicore.multiway.hive_model import Next, Pass, Update
from tests.multicore.multiway.linearizability import Timed

UPDATE, PASS, NEXT = range(3)
CELLS, SLOTS = 256, 1024
KEYS, LONGEST = 3, 6
"""Keys, and events of a batch."""


@compiled
def perform(memory, script, bounds, own, output, arrivals, clock, record, seen):  # type: ignore[no-untyped-def]
    """Do what a script says, and note moments and results.

    An operation begins when as many threads have come to theirs as `arrivals` says for it.
    """
    pairs, released, levels_held, retired = output
    key, t = np.arange(LONGEST) % KEYS, np.empty(LONGEST, np.int64)
    present = np.zeros((0, 0), np.bool_)
    kept = 0
    for k in range(len(script)):
        kind, who = script[k, 0], script[k, 1]
        for i in range(script[k, 3]):
            t[i] = script[k, 2] + i % 3
        found = 0
        winsets = 0
        add(clock, LINE, 1)
        looks = 0
        while observe(clock, LINE) < arrivals[k]:
            looks += 1
            if looks % 1000 == 0:
                breathe(10)
        record[k, 0] = add(clock, 0, 1)
        if kind == UPDATE:
            batch = Events(key[: script[k, 3]], t[: script[k, 3]], present, 0, 1)
            place(memory, who, own, bounds, batch, 0, pairs)
        elif kind == PASS:
            pass_on(memory, who, script[k, 2])
        else:
            winsets, _, least = final_slots(memory, script[k, 2])
            found = release(memory, winsets, least, released, levels_held, retired)
        record[k, 1] = add(clock, 0, 1)
        record[k, 2] = found
        begin = 0
        for j in range(winsets):
            for e in range(begin, released.until[j]):
                seen[kept, 0] = released.number[j]
                seen[kept, 1] = released.codes[e]
                seen[kept, 2] = released.cells[e]
                kept += 1
            begin = released.until[j]


def writer_script(r: random.Random, writer: int, window: Sliding) -> Array:
    """Random operations of a writer; it updates nothing that it has passed."""
    rows = []
    time = 0
    for _ in range(r.randint(2, 5)):
        if r.random() < 0.6:
            rows.append([UPDATE, writer, time + r.choice([0, 0, 1, 2, 5]), r.randint(1, LONGEST)])
        else:
            time += r.choice([1, 2, 3])
            # The first winset that ends after this time.
            rows.append([PASS, writer, first_open(window, time), 0])
    return np.array(rows, np.int64)


def output_script(r: random.Random) -> Array:
    return np.array([[NEXT, 0, r.choice([1, 9]), 0] for _ in range(r.randint(2, 5))], np.int64)


def history(seed: int, pool: ThreadPoolExecutor, window: Sliding) -> tuple[int, list[list[Timed]]]:
    """The number of writers, and what threads have done and seen."""
    r = random.Random(seed)
    writers = r.choice([1, 2, 2, 3])
    scripts = [writer_script(r, writer, window) for writer in range(writers)]
    scripts.append(output_script(r))
    return writers, recorded(window, writers, scripts, pool)


def recorded(
    window: Sliding, writers: int, scripts: list[Array], pool: ThreadPoolExecutor
) -> list[list[Timed]]:
    """What threads have done and seen, each with a script of its own; the last is the output."""
    memory = room_for(writers, 64, 128, SLOTS)
    span = window.range.value, window.slide.value, window.offset.value
    bounds = Bounds(np.array(window.edges, np.int64), *span, -(2**62))
    clock = np.zeros(2 * LINE, np.int64)
    lengths = np.array([len(script) for script in scripts])
    arrivals = np.cumsum([np.count_nonzero(lengths > k) for k in range(lengths.max())])
    none = np.empty(0, np.int64)
    owns, calls, outcomes = [], [], []
    for script in scripts:
        fields, cells = np.zeros((1, CELLS), np.int64), np.arange(CELLS)
        own = Own(fields, cells, np.array([CELLS]), none, none)
        room = [np.empty(SLOTS, np.int64) for _ in range(8)]
        output = (
            Pairs(*room[:2]),
            Released(*room[2:6]),
            np.zeros(64, np.int64),
            Retired(*room[6:], np.zeros(2, np.int64)),
        )
        record = np.zeros((len(script), 3), np.int64)
        seen = np.zeros((SLOTS, 3), np.int64)
        calls.append(
            pool.submit(perform, memory, script, bounds, own, output, arrivals, clock, record, seen)
        )
        owns.append(own)
        outcomes.append((record, seen))
    for call in calls:
        call.result()
    return [
        _read(script, record, seen, owns, writers)
        for script, (record, seen) in zip(scripts, outcomes, strict=True)
    ]


def _read(script: Array, record: Array, seen: Array, owns: list[Own], writers: int) -> list[Timed]:
    thread = []
    rows = iter(seen.tolist())
    for (kind, who, time, count), (begun, ended, found) in zip(
        script.tolist(), record.tolist(), strict=True
    ):
        done: tuple[tuple[Any, Any], ...]
        if kind == UPDATE:
            done = tuple((Update(who, time + i % 3, i % KEYS), None) for i in range(count))
        elif kind == PASS:
            done = ((Pass(who, time), None),)
        else:
            counts: dict[tuple[int, int], int] = {}
            for _ in range(found):
                number, code, cell = next(rows)
                of, lane = divmod(code, writers)
                # Cells are given to one window only, so they hold what they held when taken.
                held = int(owns[lane].fields[0, cell])
                counts[number, of] = counts.get((number, of), 0) + held
            taken = tuple(sorted((n, of, c) for (n, of), c in counts.items()))
            done = ((Next(time), taken),)
        thread.append(Timed(done, begun, ended))
    return thread
