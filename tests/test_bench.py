"""The benches run, and everybody they compare gives the same answer. Sizes are tiny."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import defined, many_windows, report, tables
from bench.agreement import disagreement
from bench.contestants import CONTESTANTS, Contestant
from bench.data import events, key_ranges, rows_of
from bench.measuring import Measured, Task, measure
from bench.tables import Case, Figure


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "PICTURES", tmp_path)
    return tmp_path


@pytest.mark.parametrize("contestant", CONTESTANTS.values(), ids=lambda c: c.name)
@pytest.mark.parametrize("overlap", [1, 2, 60])
@pytest.mark.parametrize("count", [100, 5000])
def test_contestants_agree(contestant: Contestant, overlap: int, count: int) -> None:
    if contestant.overlaps(overlap):
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


@pytest.mark.parametrize("name", ["paneflow", "duckdb"])
def test_a_case_is_measured_in_its_own_process(name: str, results: Path) -> None:
    case = Case(5000, 10, 60)
    files = tables._write(events(5000, 10), case, results)
    measured = measure(Task(name, 60, files, limit=60))
    assert measured.seconds > 0 and not measured.over
    assert measured.rows > 0 and measured.result_bytes > 0


def test_a_peer_that_takes_too_long_is_given_up(results: Path) -> None:
    files = tables._write(events(5000, 10), Case(5000, 10, 60), results)
    assert measure(Task("polars", 60, files * 50, limit=1e-3)).over


def test_tables_are_shown_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(2_000_000, 100, 60)
    quick, slow = Measured(1, False, 10, 100, 50, 200), Measured(12, False, 10, 100, 50, 900)
    figures = [Figure(case, "paneflow", quick), Figure(case, "polars", slow)]
    tables.show(figures)
    assert list(tables.verdicts(figures)) == [
        "[green]met[/]    2 M events, 100 keys, overlap 60: 12.0 times as fast as polars (10)",
        "[green]met[/]    2 M events, 100 keys, overlap 60: 1.5 times the input in memory, "
        "without rows (3)",
    ]


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
