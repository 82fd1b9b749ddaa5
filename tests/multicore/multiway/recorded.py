"""What threads do and see that work on a T-Gate at the same time, without the interpreter lock.

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
from paneflow.engines.multicore.multiway.arena import LINE, NOTHING, GateMemory, room_for
from paneflow.engines.multicore.multiway.gate_reading import take
from paneflow.engines.multicore.multiway.gate_writing import advance, insert, join, leave
from paneflow.engines.multicore.multiway.merged_runs import room_to_merge
from paneflow.merging.machine.atomics import add, breathe, observe
from tests.multicore.multiway.gate_model import Advance, Close, Idle, Insert, Join, Take
from tests.multicore.multiway.linearizability import Timed

INSERT, ADVANCE, IDLE, CLOSE, JOIN, TAKE = range(6)
LONGEST, MOST = 2, 3
"""Tuples of a run, and tuples that are taken at once."""


@compiled
def perform(gate, script, merging, found, arrivals, clock, record, seen):  # type: ignore[no-untyped-def]
    """Do what a script says, and note moments and results.

    An operation begins when as many threads have come to theirs as `arrivals` says for it.
    """
    times = np.empty(LONGEST + 1, np.int64)
    kept = 0
    for k in range(len(script)):
        kind, who = script[k, 0], script[k, 1]
        result = 0
        count = 0
        if kind == INSERT:
            count = script[k, 2]
            for i in range(count):
                times[i] = script[k, 3 + i]
        add(clock, LINE, 1)
        looks = 0
        while observe(clock, LINE) < arrivals[k]:
            looks += 1
            if looks % 1000 == 0:
                breathe(10)
        record[k, 0] = add(clock, 0, 1)
        if kind == INSERT:
            result = insert(gate, who, times[:count], 0, LONGEST)
        elif kind == ADVANCE:
            advance(gate, who, script[k, 3])
        elif kind == JOIN:
            result = join(gate, who)
        elif kind == TAKE:
            result = take(gate, who, merging, found)
        else:
            leave(gate, who, kind == CLOSE)
        record[k, 1] = add(clock, 0, 1)
        record[k, 2] = result
        if kind == TAKE:
            for i in range(result):
                seen[kept, 0] = found.times[i]
                seen[kept, 1] = found.sources[i]
                seen[kept, 2] = found.positions[i]
                kept += 1


def writer_script(r: random.Random, source: int) -> Array:
    """Random operations of a source, which are allowed whatever the others do."""
    rows = []
    time = 0
    present = True
    for _ in range(r.randint(2, 4)):
        kind = r.choice([INSERT, INSERT, INSERT, ADVANCE, IDLE]) if present else JOIN
        if kind == INSERT:
            steps = [r.choice([0, 0, 1, 2]) for _ in range(r.randint(1, LONGEST + 1))]
            ts = (time + np.cumsum(steps)).tolist()
            time = ts[-1]
            rows.append([kind, source, len(ts), *ts, *[0] * (LONGEST + 1 - len(ts))])
        else:
            time += r.choice([0, 1, 3]) * (kind == ADVANCE)
            rows.append([kind, source, 1, time, *[0] * LONGEST])
        if kind == JOIN:  # what it may insert depends on what readers have taken by then
            break
        present = kind != IDLE
    if r.random() < 0.4:
        rows.append([CLOSE, source, 0, 0, *[0] * LONGEST])
    return np.array(rows, np.int64)


def reader_script(r: random.Random, reader: int) -> Array:
    return np.array([[TAKE, reader, 0, 0, *[0] * LONGEST]] * r.randint(2, 4), np.int64)


def history(
    seed: int, pool: ThreadPoolExecutor, performing: Any = perform
) -> tuple[int, int, list[list[Timed]]]:
    """The number of sources and readers, and what threads have done and seen."""
    r = random.Random(seed)
    sources, readers = r.choice([(1, 1), (2, 1), (2, 2), (3, 1)])
    gate = room_for(sources, readers, 16, r.choice([2, 4, 16]))
    scripts = [writer_script(r, source) for source in range(sources)]
    scripts += [reader_script(r, reader) for reader in range(readers)]
    return sources, readers, recorded(gate, scripts, pool, performing)


def recorded(
    gate: GateMemory, scripts: list[Array], pool: ThreadPoolExecutor, performing: Any
) -> list[list[Timed]]:
    """What threads have done and seen, each with a script of its own."""
    clock = np.zeros(2 * LINE, np.int64)
    sources = len(gate.sources) // LINE
    lengths = np.array([len(script) for script in scripts])
    arrivals = np.cumsum([np.count_nonzero(lengths > k) for k in range(lengths.max())])
    outcomes = []
    calls = []
    for script in scripts:
        record = np.zeros((len(script), 3), np.int64)
        seen = np.zeros((len(script) * MOST, 3), np.int64)
        room = room_to_merge(sources, MOST)
        calls.append(pool.submit(performing, gate, script, *room, arrivals, clock, record, seen))
        outcomes.append((record, seen))
    for call in calls:
        call.result()
    return [
        _read(script, record, seen)
        for script, (record, seen) in zip(scripts, outcomes, strict=True)
    ]


def _read(script: Array, record: Array, seen: Array) -> list[Timed]:
    thread = []
    rows = iter(seen.tolist())
    for (kind, who, _, *values), (begun, ended, result) in zip(
        script.tolist(), record.tolist(), strict=True
    ):
        if kind == INSERT:
            done = [(Insert(who, time), None) for time in values[:result]]
        elif kind == TAKE:
            done = [(Take(who), tuple(tuple(next(rows)) for _ in range(result)))]
        elif kind == JOIN:
            done = [(Join(who), None if result == NOTHING else result)]
        elif kind == ADVANCE:
            done = [(Advance(who, values[0]), None)]
        else:
            done = [((Idle if kind == IDLE else Close)(who), None)]
        thread.append(Timed(tuple(done), begun, ended))
    return thread
