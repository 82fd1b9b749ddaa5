"""The benches of the multicore engine run, and their model says what it should. Sizes are tiny."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import multicore, report
from bench.multicore import settings
from bench.multicore.makespan import makespan
from bench.multicore.streams import CHEAP, HASH, RR, RRCP, drive
from paneflow.engines.multicore.contract import UnitMetrics
from tests.multicore.support import TOPOLOGIES

pytestmark = pytest.mark.bench

COST = {
    "step": 10.0,
    "merge": 3.0,
    "hash": 1.0,
    "list": 4.0,
    "row": 2.0,
    "part": 5.0,
    "message": 0.1,
}


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "PICTURES", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    sizes = {
        HASH.name: ((200, 50), (200, 50)),
        RRCP.name: ((20, 10), (400, 20)),
        RR.name: ((400, 100), (400, 100)),
    }
    monkeypatch.setattr(settings, "SIZES", sizes)
    return tmp_path


def test_the_busiest_unit_decides_how_long_a_stream_takes() -> None:
    idle = UnitMetrics(0, window_updates=1)
    busy = UnitMetrics(1, hash_operations=5, window_updates=7, results=2)
    work = 5 * 1 + 7 * 10 + 2 * 2
    assert makespan([idle, busy], 1, COST, "handshake") == pytest.approx(work + 0.1)
    assert makespan([idle, busy], 1, COST, "hash_once") == pytest.approx(work + 5 * 3 + 0.1)
    panes = UnitMetrics(0, pane_updates=4, windows_found=6, window_updates=7)
    work = 4 * 10 + 7 * 3
    assert makespan([panes, idle], 1, COST, "pane_ring") == pytest.approx(work + 0.1)
    assert makespan([panes, idle], 1, COST, "pane_line") == pytest.approx(work + 6 * 5 + 0.1)


def test_many_small_messages_wait_for_the_interpreter() -> None:
    units = [UnitMetrics(rank) for rank in range(8)]
    assert makespan(units, 1000, COST, "handshake") == pytest.approx(1000 * 8 * 0.1)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_driven_stream_gives_all_rows_and_their_latencies(topology: str) -> None:
    batches = CHEAP.batches(3000, 100)
    driven = drive(topology, CHEAP, 2, batches)
    assert driven.rows == 6_200  # each of 100 keys has windows that began 59 slides earlier
    assert driven.latencies
    paced = drive(topology, CHEAP, 2, batches, pace=0.01)
    assert paced.seconds >= 0.29
    assert 0 < len(paced.latencies) <= len(driven.latencies)


@pytest.mark.parametrize("part", multicore.PARTS)
def test_every_part_runs_and_draws(
    part: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = multicore.PARTS[part].run
    kept = []
    monkeypatch.setattr(
        multicore.PARTS[part], "run", lambda quick: kept.append(ran(quick)) or kept[0]
    )
    multicore.main(["--quick", part])
    assert (results / "multicore-quick.json").exists()
    multicore.PARTS[part].draw(kept[0][0])
    assert list(results.glob(f"multicore-{part}*.svg"))
