"""How long a stream would take with one core per PU: a model.

Scaling beyond the cores of this machine cannot be measured. But what each PU has to do can be
counted with any number of PUs, and what each operation costs can be measured with one. The model:

- a PU is busy for the sum over its operations, messages among them: count times cost;
- PUs work side by side, each on a core of its own, so the stream takes as long as the busiest PU;
- but steps that need the interpreter lock, those between two messages, run one after another, for
  all PUs and the feeding thread together.

    makespan(P) = max(max over PUs of sum(count * cost), messages of all PUs * cost of a message)

Costs are fitted for each setting: `message` from a stream of single events without overlap, the
others from kernels run alone. A step or a merge finds its window; making a new one is part of the
cost of a row. `hash_once` also lists what it hashes, and `pane_line` pays for each part of a window
that it finds. The plot shows the measured 1 and 2 PUs next to the model.

Operations are counted over streams that fill their windows several times and give every PU windows
of its own. How many there are does not depend on what an event costs, so they are counted with a
sum in place of the expensive aggregate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.settings import events_of
from bench.multicore.streams import HASH, KINDS, PANE_BASED, RR, RRCP, TOPOLOGIES, Setting, drive
from bench.report import Sheet
from paneflow import aggregates as A
from paneflow.engines.multicore.contract import Batch, UnitMetrics
from paneflow.engines.multicore.threads.short_loops import order_of
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.handshake import _mine
from paneflow.engines.multicore.topologies.hash_once import _list_by_owner
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.contents import Contents
from paneflow.engines.multicore.topologies.parts.messages import Arrivals, Work
from paneflow.engines.multicore.topologies.parts.panes import Dealer
from paneflow.engines.multicore.topologies.parts.pieces import PartsOf, Pieces
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.engines.multicore.topologies.parts.result_sets import ResultSet

UNITS = (1, 2, 4, 8, 16, 32, 64)
FILLED = 4
"""How often windows are filled."""
Costs = dict[str, float]
Figures = dict[str, Any]


def costs(setting: Setting, sample: int) -> Costs:
    """Seconds of each operation, for the aggregate of a setting."""
    question = Question(setting.query, KINDS)
    (span,) = question.spans
    (batch,) = setting.batches(sample, sample)
    events = Inputs.of(question, batch)
    which = np.arange(len(batch))
    numbers = batch.t // setting.slide
    windows, each_its_own = Cells(question), Cells(question)
    windows.absorb(events, which, numbers)
    each_its_own.absorb(events, which, which)
    held = each_its_own.contents().copy()

    def step() -> None:
        windows.absorb(events, which, numbers)

    def merge() -> None:
        windows.merge(held, which, numbers)

    found = [np.empty(len(batch) * span.most, np.int64) for _ in range(2)]

    def hash_() -> None:
        _mine(len(batch) * span.most, batch.key, batch.t, 0, len(batch), span.numbers, 0, 3, *found)

    def hash_and_list() -> None:
        owners, starts = np.empty_like(found[0]), np.zeros(4, np.int64)
        _list_by_owner(batch.key, batch.t, span.numbers, 3, owners, starts, *found)

    def step_alone() -> None:
        each_its_own.absorb(events, which, which)

    def row() -> None:
        ResultSet(Work(0, 0, 2**62, 0.0)).collect(question, span, each_its_own)
        step_alone()

    calm = Setting("message", 10**9, 10**9, 1, setting.aggregate)
    singles = calm.batches(sample, 1)
    drive("round_robin", calm, 1, singles[:10])
    return {
        "step": _fastest(step) / len(batch),
        "merge": _fastest(merge) / len(batch),
        "hash": _fastest(hash_) / (len(batch) * span.most),
        "list": _fastest(hash_and_list) / (len(batch) * span.most),
        "row": max(0.0, _fastest(row) - _fastest(step_alone)) / len(batch),
        "part": _part(question, batch),
        "message": drive("round_robin", calm, 1, singles).seconds / len(singles),
    }


def _part(question: Question, batch: Batch) -> float:
    """Seconds for one part of a window that travels along the line of panes."""
    (span,) = question.spans
    pieces, panes, parts_of = Pieces(span), Cells(question), PartsOf(question)
    dealer = Dealer([pieces], [pieces.together], True, 1)
    (share,) = dealer.shares(Arrivals(question, True).batch(batch))
    for dealt in share.events:
        assert dealt is not None
        events, numbers = dealt
        panes.absorb(events, np.arange(len(numbers)), numbers)
    none_before, all_now = np.array([-AFTER_ALL]), np.array([AFTER_ALL])

    def parts() -> Contents:
        found, _ = parts_of(pieces, panes.contents(), none_before, all_now, 0)
        order_of(found.number)
        return found

    return _fastest(parts) / len(parts())


def _fastest(run: Callable[[], object]) -> float:
    spent: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return min(spent)


def makespan(units: list[UnitMetrics], messages: int, cost: Costs, topology: str) -> float:
    """Seconds that a stream would take, each PU on a core of its own."""
    update = cost["merge" if topology in PANE_BASED else "step"]
    hashed = cost["list" if topology == "hash_once" else "hash"]
    found = cost["part"] if topology == "pane_line" else 0.0

    def busy(unit: UnitMetrics) -> float:
        return (
            unit.hash_operations * hashed
            + unit.windows_found * found
            + unit.window_updates * update
            + unit.pane_updates * cost["step"]
            + unit.results * cost["row"]
            + messages * cost["message"]
        )

    return max(max(map(busy, units)), messages * len(units) * cost["message"])


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """The model by setting, topology and PUs."""
    figures: Figures = {"costs": {}, "model": {}, "measured": {}, "checked": {}}
    sheets = []
    asked = UNITS[:4] if quick else UNITS
    for setting in (HASH, RRCP, RR):
        cost = costs(setting, 200 if quick else 2000)
        figures["costs"][setting.name] = cost
        model: dict[str, dict[int, float]] = {}
        measured: dict[str, dict[int, float]] = {}
        checked: dict[str, float] = {}
        for topology in TOPOLOGIES:
            timed = setting.batches(*events_of(setting, topology, True))
            counted = replace(setting, aggregate=A.sum("v"))
            batches = counted.batches(_enough(setting, asked[-1]), len(timed[0]))
            model[topology], measured[topology] = {}, {}
            drive(topology, setting, 1, timed[:2])  # compiles
            for workers in asked:
                units = drive(topology, counted, workers, batches).units
                seconds = makespan(units, len(batches), cost, topology)
                model[topology][workers] = sum(map(len, batches)) / seconds
                if workers <= 2:
                    driven = drive(topology, setting, workers, timed)
                    measured[topology][workers] = sum(map(len, timed)) / driven.seconds
                    if workers == 1:
                        modelled = makespan(driven.units, len(timed), cost, topology)
                        checked[topology] = driven.seconds / modelled
        figures["model"][setting.name], figures["measured"][setting.name] = model, measured
        figures["checked"][setting.name] = checked
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


def _enough(setting: Setting, workers: int) -> int:
    """Events that fill the windows of a setting, and give each PU some of them."""
    return max(FILLED * setting.size, workers * setting.slide)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """The model predicts one PU, where there is nothing to share, within a factor of two.

    Over the events that were measured: fewer than those of the model, so windows hold fewer.
    """
    for setting, checked in figures["checked"].items():
        for name, ratio in checked.items():
            yield (
                0.5 <= ratio <= 2,
                f"{setting}, {name}: the model gives {ratio:.2f} of 1 PU measured",
            )


def draw(figures: Figures) -> None:
    """Inputs a second by PUs, of the model and measured."""
    pictures.draw_makespan(figures)
