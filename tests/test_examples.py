"""The examples run, each as a script of its own, and show what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples import own_aggregate, trading_fit
from paneflow.compiling.notices import COMPILING

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.processes
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": str(Path.home())},
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    # The first run on a machine may say that it compiles.
    assert not done.stderr.replace(f"{COMPILING}\n", "")


def test_there_are_examples() -> None:
    assert {"own_aggregate", "threshold_window", "trading_fit"} <= {e.stem for e in EXAMPLES}


@pytest.mark.parametrize("engine", ["oracle", "table"])
def test_the_largest_drops_are_those_drawn(engine: str) -> None:
    query = own_aggregate.QUERY
    rows = query.over(own_aggregate.PRICES, engine=engine).to_pylist()
    drops = {(row["start"], row["end"]): row["drop"] for row in rows}
    assert (drops[2, 6], drops[4, 8], drops[6, 10]) == (2.0, 6.0, 2.0)


def test_a_fit_forecasts_better_than_the_latest_price() -> None:
    table = trading_fit.quotes().slice(0, 3000)
    rows = trading_fit.QUERY.over(table)
    for forecasts, by_fit, by_latest in trading_fit.errors(rows).values():
        assert forecasts > 40
        assert by_fit < 0.7 * by_latest


def test_a_fit_gets_the_quotes_of_its_window() -> None:
    """On a parabola without noise the fit is exact, so every forecast is known."""
    table = trading_fit.quotes().slice(0, 2000)
    at = [t.timestamp() for t in table["ts"].to_pylist()]
    exact = table.set_column(2, "price", [[50 + t * t / 10 for t in at]])
    of = table["symbol"].to_pylist()
    checked = 0
    for row in trading_fit.QUERY.over(exact).to_pylist():
        end = row["end"].timestamp()
        if row["window"] == "fit" and end < at[-1]:  # later windows may have too few quotes
            last = max(
                t for t, name in zip(at, of, strict=True) if t < end and name == row["symbol"]
            )
            assert row["forecast"] == pytest.approx(50 + (last + 0.25) ** 2 / 10)
            checked += 1
    assert checked > 50
