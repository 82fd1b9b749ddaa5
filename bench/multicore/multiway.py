"""Many inputs: the twelve queries of table 2 with 1 to 20 inputs, by all designs.

Section 7.3 of Gulisano et al., "Efficient data streaming multiway aggregation through concurrent
algorithmic designs and new abstract data types": figures 13 to 26. Every input has a thread of its
own and the same number of events in each unit of time, so more inputs make more events in a window.
Latency is measured at full load: from the push of the last event that a window waited for, on
whichever input, until the window is given out.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.multicore import pictures
from bench.multicore.multiway_data import METERS, RATE, TABLE, Asked, Given
from bench.multicore.multiway_designs import BATCH, DESIGNS, PAUSE
from bench.report import Sheet
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM

INPUTS = (1, 5, 10, 20)
PROMISED = 20e6
Figures = dict[str, Any]


class Driven(NamedTuple):
    """The result of a run."""

    seconds: float
    processor: float
    rows: int
    latency: float | None
    """None if no window was given out before the end."""


def drive(name: str, asked: Asked, given: Given) -> Driven:
    """Push all inputs, each in a thread, and give out windows in this one."""
    design = DESIGNS[name](asked, given)
    pushed: list[list[tuple[int, float]]] = [[] for _ in range(design.inputs)]

    def push(source: int) -> None:
        try:
            for begin in range(0, given.length, BATCH):
                end = min(begin + BATCH, given.length)
                pushed[source].append((int(given.t[source, end - 1]), time.perf_counter()))
                design.add(source, begin, end)
            design.close(source)
        except BaseException as error:
            design.failed.append(error)
            raise

    threads = [threading.Thread(target=push, args=(k,)) for k in range(design.inputs)]
    threads += design.helpers()
    rows, seen = 0, BEFORE_ALL
    given_out: list[tuple[int, float]] = []
    start, processor = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    while seen < END_OF_STREAM and not design.failed:
        design.work()
        more, limit = design.output()
        rows += more
        if limit > seen:
            given_out.append((limit, time.perf_counter()))
            seen = limit
        else:
            time.sleep(PAUSE)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    for thread in threads:
        thread.join()
    if design.failed:
        raise design.failed[0]
    return Driven(seconds, processor, rows, _latency(pushed, given_out))


def _latency(
    pushed: list[list[tuple[int, float]]], given_out: list[tuple[int, float]]
) -> float | None:
    """The median time from the last push that was waited for."""
    found = []
    for limit, moment in given_out:
        if limit >= END_OF_STREAM:
            continue
        needed = []
        for each in pushed:
            at = np.searchsorted([t for t, _ in each], limit)
            needed.append(each[min(int(at), len(each) - 1)][1])
        found.append(moment - max(needed))
    return statistics.median(found) if found else None


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f}"


def events_of(asked: Asked, inputs: int, quick: bool) -> int:
    """How many events: ten times as long as the longest window, or more with few inputs."""
    if quick:
        return 10_000 * inputs
    units = 10 * max(each.size for each in TABLE)
    least = 4_000_000 if asked.keys == METERS else 1_000_000
    return max(least, units * RATE * inputs)


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Events a second and latency, by query, design and number of inputs."""
    figures: Figures = {}
    sheets = []
    asked_inputs = (1, 4) if quick else INPUTS
    for asked in TABLE:
        figures[asked.name] = {}
        sections = []
        rows: set[tuple[int, int]] = set()
        for name, design in DESIGNS.items():
            if asked.ordered and not design.ordered:
                continue
            found: dict[int, dict[str, Any]] = {}
            for inputs in asked_inputs:
                given = Given(asked, inputs, events_of(asked, inputs, quick))
                drive(name, asked, Given(asked, inputs, 2000 * inputs))  # compiles
                driven = drive(name, asked, given)
                rows.add((inputs, driven.rows))
                found[inputs] = {
                    "events/s": given.t.size / driven.seconds,
                    "events/processor second": given.t.size / driven.processor,
                    "latency": driven.latency,
                }
            figures[asked.name][name] = found
            cells = [f"{row['events/s'] / 1e6:.2f}" for row in found.values()]
            cells += [_milliseconds(row["latency"]) for row in found.values()]
            sections.append([name, *cells])
        assert len(rows) == len(asked_inputs), f"designs do not agree on {asked.name}: {rows}"
        headings = ("design", *(f"{n} inputs: million/s" for n in asked_inputs))
        headings += tuple(f"{n}: ms" for n in asked_inputs)
        sheets.append(Sheet(asked.name, headings, [sections]))
    return figures, sheets


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """WiML beats MQ where order does not matter, and does not slow down as inputs grow."""
    for query, found in figures.items():
        if query.endswith("OS"):
            continue
        few, *_, many = found["MQ"]
        for name in ("WiML", "WiML, slices"):
            ratio = found[name][many]["events/s"] / found["MQ"][many]["events/s"]
            yield ratio > 1, f"{query}, {many} inputs: {name} {ratio:.1f} times as fast as MQ (1)"
            ratio = found[name][many]["events/s"] / found[name][few]["events/s"]
            yield ratio >= 0.8, f"{query}: {name} with {many} inputs {ratio:.2f} of {few} (0.8)"
    best = max(row["events/s"] for row in figures["k-OI"]["WiML, slices"].values())
    yield best >= PROMISED, f"k-OI by slices: {best / 1e6:.1f} million events/s (20)"


def draw(figures: Figures) -> None:
    """Events a second and latency by inputs."""
    pictures.draw_multiway(figures)
