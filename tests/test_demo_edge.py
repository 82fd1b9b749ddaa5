"""The demo of a tree: real nodes, a real broker, a kill; and a wrong row would be noticed."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

from paneflow.demo.edge import broker, main
from paneflow.demo.edge.broker import Broker, find_broker
from paneflow.demo.edge.checks import Different, compare
from paneflow.demo.edge.layout import HOUSES, NODES, QUERY, VICTIM, addresses, tree_toml
from paneflow.demo.edge.screen import screen
from paneflow.demo.plugs import Readings, readings
from paneflow.edge import read_rows, read_tree
from paneflow.engines.edge.watching.picture import NodeLine
from paneflow.errors import UnsupportedError


@pytest.fixture(scope="module")
def sent() -> Readings:
    return main.on_time(readings(houses=8, rate=0.02))


def plain_console() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=100), text


@pytest.mark.processes
@pytest.mark.parametrize("with_broker", [True, False])
def test_a_tree_that_loses_a_node_meanwhile_gives_the_right_rows(
    with_broker: bool, sent: Readings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_broker:
        monkeypatch.setattr(main, "find_broker", lambda: None)
    console, text = plain_console()
    folder = tmp_path / "edge"
    count = main.run(sent, folder, 4.0, console)
    assert count == QUERY.over(sent.table).num_rows
    shown = text.getvalue()
    assert f"{VICTIM} (process " in shown
    assert "7 nodes, all alive" in shown
    uses_mqtt = with_broker and find_broker() is not None
    assert ("apt-get install mosquitto" in shown) != uses_mqtt
    assert ("mqtt://" in (folder / "tree.toml").read_text()) == uses_mqtt
    starts = [json.loads(line) for line in (folder / f"{VICTIM}.log").read_text().splitlines()]
    assert [line["event"] for line in starts].count("the node runs") == 2

    rows = read_rows(folder / "rows")
    at = rows.schema.get_field_index("peak")
    with pytest.raises(Different, match="differ in 'peak'"):
        compare(rows.set_column(at, "peak", pc.add(rows["peak"], 0.5)), sent.table)
    with pytest.raises(Different, match="rows, the table engine"):
        compare(rows.slice(1), sent.table)
    at = rows.schema.get_field_index("complete")
    with pytest.raises(Different, match="1 rows of the tree are incomplete"):
        compare(
            rows.set_column(at, "complete", pa.array([False] + [True] * (rows.num_rows - 1))),
            sent.table,
        )


def test_the_exit_code_says_whether_rows_are_equal(
    sent: Readings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "readings", lambda houses, rate: sent)

    def different(*_: Any) -> int:
        raise Different("the tree has 1 rows, the table engine 2")

    def broken(*_: Any) -> int:
        raise UnsupportedError("the broker does not start")

    monkeypatch.setattr(main, "on_time", lambda given: given)
    for outcome, code, said in (
        (lambda *_: 1234, 0, "Equal: all 1,234 rows"),
        (different, 1, "NOT equal: the tree has 1 rows"),
        (broken, 1, "the demo cannot go on: the broker does not start"),
    ):
        monkeypatch.setattr(main, "run", outcome)
        assert main.main() == code
        assert said in capsys.readouterr().out


def test_the_last_reading_is_taken_now(sent: Readings) -> None:
    moved = main.until_now(sent)
    ahead = pc.max(moved.table["ts"]).as_py() - datetime.now(UTC)
    assert timedelta(minutes=-2) < ahead <= timedelta(0)
    between = set(pc.subtract(moved.table["ts"], sent.table["ts"]).to_pylist())
    assert len(between) == 1


def test_readings_reach_the_tree_out_of_order_but_in_time(sent: Readings) -> None:
    times = sent.table["ts"].cast(pa.int64()).to_numpy()
    assert (times[1:] < times[:-1]).any()
    assert not sent.held_up.any()
    assert set(sent.table["house"].to_pylist()) == {h for hs in HOUSES.values() for h in hs}


@pytest.mark.parametrize("address", ["mqtt://127.0.0.1:1883", None])
def test_the_file_describes_a_tree_of_seven_nodes(address: str | None, tmp_path: Path) -> None:
    file = tmp_path / "tree.toml"
    file.write_text(tree_toml(addresses(address)))
    tree = read_tree(file)
    assert set(tree.nodes) == set(NODES)
    assert repr(tree.question.query) == repr(QUERY)
    assert sorted(tree.nodes["root"].children) == ["east", "west"]


def test_a_broker_that_does_not_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "STARTS_WITHIN", 0.0)
    with (
        pytest.raises(UnsupportedError, match="/bin/false does not start"),
        Broker("/bin/false", tmp_path / "broker"),
    ):
        raise AssertionError("it runs")


def line(node: str, alive: bool = True, **metrics: int) -> NodeLine:
    return NodeLine(node, "child", 0, alive, 1.0, 0.0, 0.0, 0.0, metrics)


def test_a_terminal_shows_the_tree_and_a_pipe_lines() -> None:
    tree = [line("root", rows=7), line("e1", alive=False, events=1200)]
    text = io.StringIO()
    with screen(Console(file=text, force_terminal=True, width=100)) as show:
        show(tree, "e1 has been killed")
    assert "2 nodes, 1 dead" in text.getvalue()
    assert "e1 has been killed" in text.getvalue()
    console, text = plain_console()
    with screen(console) as show:
        for _ in range(3):
            show(tree, "e1 has been killed")
        show(tree, "e1 is back")
    first, second = text.getvalue().splitlines()
    assert first == "2 nodes, dead: e1, 1,200 readings, 7 rows; e1 has been killed"
    assert second.endswith("e1 is back")
