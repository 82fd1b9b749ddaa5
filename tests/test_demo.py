"""The demo's stream is answered, is repeatable, and a wrong row would be noticed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from paneflow.demo import main
from paneflow.demo.checks import compare_with_table
from paneflow.demo.feed import Feed
from paneflow.demo.live import Outcome, Seen, of_window
from paneflow.demo.plugs import LONGEST_TRAVEL, Readings, readings
from paneflow.demo.question import LIVE, PACKET
from paneflow.demo.screen import lines, live_table, screen
from paneflow.errors import UnsupportedError


@pytest.fixture(scope="module")
def sent() -> Readings:
    return readings(houses=2, rate=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demo")
    (made / "rows").mkdir()
    (made / "rows" / "earlier.parquet").touch()
    (made / "notes.txt").write_text("not the demo's")
    return made


@pytest.fixture(scope="module")
def outcome(spark: Any, sent: Readings, folder: Path) -> Outcome:
    return main.stream(spark, sent, folder, speed=1e9, show=lambda seen, feed: None)


def test_the_same_seed_gives_the_same_readings(sent: Readings) -> None:
    assert sent.table.equals(readings(houses=2, rate=0.1).table)
    assert not sent.table.equals(readings(houses=2, rate=0.1, seed=5).table)


def test_readings_are_skewed_out_of_order_and_some_very_late(sent: Readings) -> None:
    times = sent.table["ts"].cast(pa.int64()).to_numpy()
    behind = np.maximum.accumulate(times) - times
    assert (np.diff(times) < 0).any()
    assert behind[~sent.held_up].max() <= LONGEST_TRAVEL * 10**6 < LIVE.lateness.value
    assert behind[sent.held_up].min() > 3600 * 10**6
    assert sent.table["load"].null_count > 0
    counts = sent.table.group_by(["house", "plug"]).aggregate([("ts", "count")])["ts_count"]
    assert pc.max(counts).as_py() > 10 * pc.min(counts).as_py()


def test_the_feed_sends_every_reading_once(sent: Readings, tmp_path: Path) -> None:
    feed = Feed(sent, tmp_path, speed=1e9)
    feed.start()
    feed.join()
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) > 100
    arrived = pa.concat_tables(pq.read_table(file) for file in files)
    assert arrived.equals(sent.table)
    assert feed.sent == sent.table.num_rows


@pytest.mark.long
def test_the_stream_gives_the_rows_of_the_table_engine(outcome: Outcome, sent: Readings) -> None:
    assert outcome.readings == sent.table.num_rows
    assert 0 < outcome.late <= sent.held_up.sum()
    assert compare_with_table(outcome.rows, sent) > 100_000
    packets = of_window(outcome.rows, PACKET)
    assert set(packets["readings"].to_pylist()) == {500}


@pytest.mark.long
def test_a_wrong_row_is_noticed(outcome: Outcome, sent: Readings) -> None:
    rows = outcome.rows
    place = rows.schema.get_field_index("peak")
    wrong = rows.set_column(place, "peak", pc.add(rows["peak"], 0.5))
    with pytest.raises(SystemExit, match="differs from that of the table engine in 'peak'"):
        compare_with_table(wrong, sent)
    with pytest.raises(SystemExit, match="rows, the table engine"):
        compare_with_table(rows.slice(0, rows.num_rows // 2), sent)


@pytest.mark.long
def test_it_ends_with_a_summary_and_a_picture(
    spark: Any, outcome: Outcome, sent: Readings, folder: Path
) -> None:
    said = main.sum_up(spark, sent, outcome, folder, span="5 seconds")
    assert f"{sent.table.num_rows:,} readings" in said
    assert "window() takes" in said
    assert (folder / "summary.txt").read_text() in said
    assert (folder / "plugs.png").read_bytes().startswith(b"\x89PNG")
    assert pq.read_table(folder / "rows").num_rows == outcome.rows.num_rows


@pytest.mark.long
def test_only_its_own_earlier_results_are_removed(outcome: Outcome, folder: Path) -> None:
    assert not (folder / "rows" / "earlier.parquet").exists()
    assert not (folder / "checkpoint").exists()
    assert (folder / "notes.txt").exists()


@pytest.fixture
def seen(outcome: Outcome) -> Seen:
    made = Seen()
    made.take(outcome.rows)
    return made


@pytest.mark.long
def test_the_terminal_shows_the_hottest_plugs(seen: Seen, sent: Readings, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with live_table(console) as show:
        show(seen, Feed(sent, tmp_path, 1))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert seen.hours[0]["plug"] in shown
    assert "readings sent" in shown


@pytest.mark.long
def test_without_a_terminal_it_shows_lines(
    seen: Seen, sent: Readings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with screen() as show:
        show(seen, Feed(sent, tmp_path, 1))
        show(seen, Feed(sent, tmp_path, 1))
    lines()(Seen(), Feed(sent, tmp_path, 1))
    first, second = capsys.readouterr().out.splitlines()
    assert f"hottest: {seen.hours[0]['plug']}" in first
    assert "0 rows" in second


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, sent: Readings) -> None:
    def none() -> Any:
        raise UnsupportedError("Spark needs Java")

    monkeypatch.setattr(main, "readings", lambda: replace(sent))
    monkeypatch.setattr(main, "start_spark", none)
    with pytest.raises(SystemExit, match="the demo cannot run: Spark needs Java"):
        main.main()
