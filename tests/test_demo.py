"""The demo runs, is repeatable, and would notice a wrong row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paneflow import demo


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return demo.plugs(2)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "HOUSES", 2)
    monkeypatch.setattr(demo, "CHECKED", ((2, "kettle"),))


def test_the_same_seed_gives_the_same_plugs(table: pa.Table) -> None:
    assert table.equals(demo.plugs(2))
    assert not table.equals(demo.plugs(2, seed=5))


def test_plugs_are_out_of_order_skewed_and_have_losses(table: pa.Table) -> None:
    assert (np.diff(table["ts"].to_numpy()) < np.timedelta64(0)).any()
    assert table["load"].null_count > 0
    readings = [v["counts"] for v in pc.value_counts(table["plug"]).to_pylist()]
    assert max(readings) > 10 * min(readings)


def test_a_wrong_row_is_noticed(table: pa.Table, small: None) -> None:
    rows = demo.QUERY.over(table)
    assert demo.compare_with_oracle(table, rows) > 0
    place = rows.schema.get_field_index("peak")
    wrong = rows.set_column(place, "peak", pc.add(rows["peak"], 0.5))
    with pytest.raises(SystemExit, match="the oracle"):
        demo.compare_with_oracle(table, wrong)
    with pytest.raises(SystemExit, match="the oracle"):
        demo.compare_with_oracle(table, rows.slice(0, rows.num_rows // 2))


def test_demo_writes_rows_and_a_picture(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.main()
    said = capsys.readouterr().out
    assert "equal the oracle's" in said
    assert set(pq.read_table(tmp_path / "demo-output" / "rows.parquet")["plug"].to_pylist())
    picture = (tmp_path / "demo-output" / "plugs.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
