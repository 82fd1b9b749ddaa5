"""The benches run, and everybody they compare gives the same answer. Sizes are tiny."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import cold_start, defined, many_windows, report, tables
from bench.agreement import disagreement
from bench.cases import Case, Figure
from bench.contestants import CONTESTANTS, Contestant
from bench.data import events, key_ranges, rows_of
from bench.measuring import Measured, Task, measure
from bench.merging import fiba, handover, latency, out_of_order, rolling, throughput, windows
from bench.merging.operators import maximum
from bench.showing import sheets, targets
from paneflow.aggregates.operator import Array, Operator
from paneflow.merging.fiba import Fiba
from paneflow.merging.sba import SBA

pytestmark = pytest.mark.bench


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "PICTURES", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    (tmp_path / "benchmarks.md").write_text(
        "before\n<!-- tables -->\nold\n<!-- end of tables -->\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("contestant", "overlap"),
    [
        pytest.param(contestant, overlap, id=f"{contestant.name} {overlap}")
        for contestant in CONTESTANTS.values()
        for overlap in (1, 2, 60)
        if contestant.overlaps(overlap)
    ],
)
@pytest.mark.parametrize("count", [100, 5000])
def test_contestants_agree(contestant: Contestant, overlap: int, count: int) -> None:
    assert disagreement(contestant, events(count, 10), overlap) is None


def test_a_wrong_answer_is_noticed() -> None:
    honest = CONTESTANTS["paneflow"]
    longer = replace(honest, run=lambda given, overlap: honest.run(given, overlap + 1))
    fewer = replace(honest, run=lambda given, overlap: honest.run(given, overlap).slice(1))
    table = events(1000, 10)
    assert "rows are not among paneflow's" in str(disagreement(longer, table, 5))
    assert "1 of paneflow's" in str(disagreement(fewer, table, 5))


def test_key_ranges_hold_every_event_once() -> None:
    table = events(1000, 10)
    parts = list(key_ranges(table, 10, 3))
    assert sum(part.num_rows for part in parts) == 1000
    assert sorted(k for part in parts for k in set(part["key"].to_pylist())) == list(range(10))


def test_rows_are_foreseen_about_right() -> None:
    found = CONTESTANTS["paneflow"].run(events(20_000, 10), 60).num_rows
    assert rows_of(20_000, 10, 60) == pytest.approx(found, rel=0.02)


def test_a_peer_that_takes_too_long_is_given_up(results: Path) -> None:
    files = tables.write_input(events(5000, 10), Case(5000, 10, 60), results)
    assert measure(Task("polars", 60, files * 50, limit=1e-3)).over


@pytest.fixture
def figures() -> list[Figure]:
    case = Case(2_000_000, 100, 60)
    quick, slow = Measured(1, False, 10, 100, 50, 200), Measured(12, False, 10, 100, 50, 900)
    given_up = Measured(300, over=True)
    return [
        Figure(case, "paneflow", quick),
        Figure(case, "polars", slow),
        Figure(case, "duckdb", given_up),
    ]


def test_targets_are_judged(figures: list[Figure]) -> None:
    case = "2 million events, 100 keys, overlap 60"
    assert list(targets(figures)) == [
        (True, f"{case}: 12.0 times as fast as polars (10)"),
        (True, f"{case}: 1.5 times the input in memory, without rows (3)"),
    ]


def test_figures_become_a_table_for_the_docs(figures: list[Figure]) -> None:
    (sheet,) = sheets(figures)
    assert sheet.markdown().splitlines()[4:] == [
        "| 60 | paneflow | 1.000 | 1.0 | 2.0 | 10 | 2.0 | 0.5 | 1.5 |",
        "| 60 | polars | 12.000 | 12.0 | 0.2 | 10 | 9.0 | 0.5 | 8.5 |",
        "| 60 | duckdb | over limit (~300) | ~300.0 |  |  |  |  |  |",
    ]


def test_figures_replace_those_of_the_docs(figures: list[Figure], results: Path) -> None:
    report.publish("tables", sheets(figures))
    report.publish("tables", sheets(figures))
    page = (results / "benchmarks.md").read_text()
    assert page.startswith("before\n<!-- tables -->\n\nMeasured on")
    assert page.count("| 60 | paneflow |") == 1 and "old" not in page
    with pytest.raises(SystemExit, match="no place for others"):
        report.publish("others", sheets(figures))


def test_a_whole_run_leaves_figures_and_a_picture(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FULL", ((1000,), (10,), (1,)))
    monkeypatch.setattr(tables, "CONTESTANTS", {k: CONTESTANTS[k] for k in ("paneflow", "duckdb")})
    tables.main([])
    written = json.loads((results / "tables.json").read_text())["figures"]
    assert [f["contestant"] for f in written] == ["paneflow", "duckdb"]
    assert all(f["measured"]["seconds"] > 0 for f in written)
    assert len({f["measured"]["rows"] for f in written}) == 1
    assert (results / "tables.svg").read_text().lstrip().startswith("<?xml")


def test_the_first_answer_is_timed_cold_and_warm(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_start, "SMALL", "import numba")
    monkeypatch.setattr(cold_start, "LARGE", "import numba")
    monkeypatch.setattr(cold_start, "IMPORT", "")
    monkeypatch.setattr(cold_start, "TOGETHER", 2)
    cold_start.main(["--quick"])
    written = json.loads((results / "cold-start.json").read_text())["figures"]
    assert {"import", "small, warm", "small, cold", "small, 2 cold"} <= written.keys()
    assert all(took["seconds"] > 0 and took["processor"] > 0 for took in written.values())


def test_defined_and_built_in_are_compared() -> None:
    assert defined.compare(events(2000, 10))["ratio"] > 0


@pytest.mark.parametrize("unit", many_windows.UNITS)
def test_many_windows_are_compared_with_one(unit: str) -> None:
    figure = many_windows.compare(events(2000, 4), 4, 20, unit)
    assert figure["many rows"] > figure["one rows"]


def test_figures_are_written_with_the_machine(results: Path) -> None:
    written = json.loads(report.write("some", [1, 2]).read_text())
    assert written["figures"] == [1, 2]
    assert written["machine"]["versions"]["polars"]


NARROW = 40


@pytest.fixture(scope="module")
def numbers() -> Array:
    return np.random.default_rng(1).normal(size=1000)


def test_merge_benches_slide_as_they_say(numbers: Array) -> None:
    """A loop slides by several at once, and by time; both leave what the window holds."""
    loops = (
        (windows.Slides(SBA, single=False), (NARROW, 10, 0, 1000), 990),
        (windows.TimeSlides(SBA), (2 * NARROW, np.arange(0, 2000, 2), 0, 1000), 999),
    )
    for loop, arguments, last in loops:
        with windows.Opened("sba", maximum(), NARROW) as opened:
            run = opened.kernel("slides", loop)
            run(*opened.window.state, *arguments, numbers, *opened.out)
            assert opened.out[0][last] == numbers[-NARROW:].max()
            assert len(opened.window) == NARROW


def test_merge_benches_time_what_they_say(numbers: Array) -> None:
    assert windows.seconds_to_slide("sba", maximum(), NARROW, numbers) > 0
    assert (windows.cycles_of_slides("sba", maximum(), NARROW, numbers) > 0).all()
    assert (windows.cycles_of_evictions("sba", maximum(), NARROW, 10, 5, numbers) > 0).all()


def test_fiba_is_given_entries_at_a_distance(
    numbers: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each newcomer has exactly so many entries before it."""
    opened: list[Fiba] = []

    def run(operator: Operator, window: Fiba, cuts: Array, times: Array, values: Array) -> float:
        opened.append(window)
        for cut, t, value in zip(cuts.tolist(), times.tolist(), values.tolist(), strict=True):
            window.bulk_evict(cut)
            window.insert(t, value)
            newest = fiba.SPREAD * NARROW
            assert window.range_query(t + 1, newest) == (numbers[NARROW - 7 : NARROW].max(),)
            assert len(window) == NARROW
        return 1.0

    monkeypatch.setattr(fiba, "_run", run)
    fiba.seconds_at_distance(maximum(), NARROW, 7, numbers[: NARROW + 20])
    assert len(opened) == 1


def test_the_least_of_several_times_counts() -> None:
    runs = iter([np.array([3, 9, 3]), np.array([4, 3, 3]), np.array([3, 3, 80])])
    assert latency.least(lambda: next(runs), 3).tolist() == [3, 3, 3]


def test_merge_figures_are_drawn(results: Path) -> None:
    curve, row = [(10.0, 1.0), (90.0, 1e-6)], {8: 1.0, 64: 2.0}
    grids = {key: {"sba": row, "polars": row} for key in ("range", "slide", "minutes")}
    throughput.draw(grids)
    latency.draw({"curves": dict.fromkeys((*latency.NAMES, "floor"), curve)})
    out_of_order.draw({"distance": {"fiba": row}, "evictions": {"fiba": row, "sba": row}})
    rates = {64: {"sba": 1.0, "pba": 1.2}}
    handover.draw({"range": {"log-sum-exp": rates}, "cost": [{"ns": 1.0, "ratio": 0.5}]})
    drawn = sorted(path.name for path in results.glob("merging-*.svg"))
    parts = ("handover", "latency", "out-of-order", "throughput")
    assert drawn == [f"merging-{part}.svg" for part in parts]


def test_merge_targets_are_judged() -> None:
    row = {"memcpy": 2000.0, "paneflow": 400.0, "polars": 50.0, "pandas": 20.0}
    assert [holds for holds, _ in rolling.targets({1024: row})] == [True, False, True]
    figures = {"range": {"moment sketch": {1 << 15: {"sba": 1.0, "pba": 0.9}}}}
    assert list(handover.targets(figures)) == [
        (False, "moment sketch, range 32,768: PBA is 0.90 times as fast as SBA (1)")
    ]
