"""How long a stream would take on as many cores as there are PUs: a model, and what it rests on.

Threads of this process run on the cores that there are, so scaling beyond them cannot be measured.
But what each PU has to do can be counted with any number of PUs, and what each thing costs can be
measured with one. The model:

- a PU is busy for the sum over its parts: count times cost;
- PUs work side by side, each on a core of its own, so the stream takes as long as the busiest PU;
- except for what needs the interpreter lock: the steps between two messages, of all PUs and of the
  feeder together, one after the other.

    makespan(P) = max(max over PUs of sum(count * cost), messages of all PUs * cost of a message)

Costs are fitted for each setting: `message` from a stream of single events without overlap, the
others from kernels run alone. The measured 1 and 2 PUs stand beside the model in the plot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.settings import events_of
from bench.multicore.streams import HASH, KINDS, PANE_BASED, RR, RRCP, TOPOLOGIES, Setting, drive
from bench.report import Sheet
from paneflow.engines.multicore.cells import Cells
from paneflow.engines.multicore.contract import UnitMetrics
from paneflow.engines.multicore.handshake import _mine
from paneflow.engines.multicore.question import Events, Question
from paneflow.engines.multicore.results import ResultSet
from paneflow.engines.multicore.work import Work

UNITS = (1, 2, 4, 8, 16, 32, 64)
Costs = dict[str, float]
Figures = dict[str, Any]


def costs(setting: Setting, sample: int) -> Costs:
    """Seconds of each part, for the aggregate of a setting."""
    question = Question(setting.query, KINDS)
    (span,) = question.spans
    (batch,) = setting.batches(sample, sample)
    events = Events(question, batch)
    which = np.arange(len(batch))
    numbers = batch.t // setting.slide

    def step() -> None:
        Cells(question).absorb(events, which, numbers)

    panes = Cells(question)
    panes.absorb(events, which, which)
    held = panes.contents()

    def merge() -> None:
        Cells(question).merge(held, which, numbers)

    found = [np.empty(len(batch) * span.most, np.int64) for _ in range(2)]

    def hash_() -> None:
        _mine(len(batch) * span.most, batch.key, batch.t, 0, len(batch), span.numbers, 0, 3, *found)

    filled = Cells(question)

    def fill() -> None:
        filled.absorb(events, which, which)

    def collect() -> None:
        fill()
        ResultSet(Work(0, 0, 2**62, 0.0)).collect(question, span, filled)

    def refill() -> None:
        fill()
        filled.take()

    calm = Setting("message", 10**9, 10**9, 1, setting.aggregate)
    singles = calm.batches(sample, 1)
    drive("round_robin", calm, 1, singles[:10])
    return {
        "step": _fastest(step) / len(batch),
        "merge": _fastest(merge) / len(batch),
        "hash": _fastest(hash_) / (len(batch) * span.most),
        "row": max(0.0, _fastest(collect) - _fastest(refill)) / len(batch),
        "message": drive("round_robin", calm, 1, singles).seconds / len(singles),
    }


def _fastest(run: Callable[[], object]) -> float:
    spent: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return min(spent)


def makespan(units: list[UnitMetrics], messages: int, cost: Costs, by_panes: bool) -> float:
    """Seconds that a stream would take, each PU on a core of its own."""

    def busy(unit: UnitMetrics) -> float:
        return (
            unit.hash_operations * cost["hash"]
            + unit.window_updates * cost["merge" if by_panes else "step"]
            + unit.pane_updates * cost["step"]
            + unit.results * cost["row"]
        )

    return max(max(map(busy, units)), messages * len(units) * cost["message"])


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """The model by setting, topology and PUs."""
    figures: Figures = {"costs": {}, "model": {}, "measured": {}}
    sheets = []
    asked = UNITS[:4] if quick else UNITS
    for setting in (HASH, RRCP, RR):
        cost = costs(setting, 200 if quick else 2000)
        figures["costs"][setting.name] = cost
        model: dict[str, dict[int, float]] = {}
        measured: dict[str, dict[int, float]] = {}
        for topology in TOPOLOGIES:
            batches = setting.batches(*events_of(setting, topology, True))
            events = sum(map(len, batches))
            model[topology], measured[topology] = {}, {}
            for workers in asked:
                driven = drive(topology, setting, workers, batches)
                seconds = makespan(driven.units, len(batches), cost, topology in PANE_BASED)
                model[topology][workers] = events / seconds
                if workers <= 2:
                    measured[topology][workers] = events / driven.seconds
        figures["model"][setting.name], figures["measured"][setting.name] = model, measured
        rows = [
            [
                name,
                *(f"{row[p]:,.0f}" for p in asked),
                *(f"{measured[name][p]:,.0f}" for p in (1, 2)),
            ]
            for name, row in model.items()
        ]
        headings = ("contestant", *(f"{p} PU" for p in asked), "1 measured", "2 measured")
        sheets.append(Sheet(f"{setting.name}: events/s by the model", headings, [rows]))
    return figures, sheets


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """The model predicts one PU, where there is nothing to share, within a factor of two."""
    for setting, model in figures["model"].items():
        for name, row in model.items():
            ratio = row[1] / figures["measured"][setting][name][1]
            yield (
                0.5 <= ratio <= 2,
                f"{setting}, {name}: the model gives {ratio:.2f} of 1 PU measured",
            )


def draw(figures: Figures) -> None:
    """Events a second by PUs, of the model and measured."""
    pictures.draw_makespan(figures)
