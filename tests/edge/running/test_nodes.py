"""Nodes in a program: how they end, what slows them down, and what they show."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paneflow.engines.edge.config import (
    ConfigError,
    FileInputConfig,
    LimitsConfig,
    Parent,
    SlicesOutputConfig,
    ZmqInputConfig,
)
from paneflow.engines.edge.inputs.sensor import SensorTimeout
from paneflow.engines.edge.journal import Journal, JournalError
from paneflow.engines.edge.network.sockets import AddressError
from paneflow.engines.edge.nodes.root import in_order
from paneflow.engines.edge.outputs.slices import read_slices
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.running.loop import Loop
from paneflow.engines.edge.running.node import Node
from paneflow.engines.edge.watching.picture import NodeLine
from paneflow.engines.edge.watching.status import ask_status
from tests.edge.ports import free_port
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.edge.running.real_trees import QUICK
from tests.edge.running.threads import HERE, Threads, goes_on, threads
from tests.properties.compare import assert_same_rows
from tests.waiting import PATIENCE, wait_until


def test_an_address_that_is_taken_is_refused_and_the_log_is_free_again(tree: Threads) -> None:
    taken = tree.root().address
    for _ in range(2):
        with pytest.raises(AddressError, match="cannot be used"):
            tree.node("other", "root", listen=taken)


def test_a_signal_stops_a_node_that_is_about_to_wait(tree: Threads) -> None:
    node = Node(tree.config("root", "root", listen=HERE))
    handler = signal.signal(signal.SIGUSR2, lambda number, frame: node.stop())

    def send() -> None:
        # A signal that another thread takes interrupts nothing in the main thread, like one that
        # comes just before it waits.
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR2)

    sent, late = threading.Timer(0.2, send), threading.Timer(PATIENCE, node.stop)
    sent.start()
    late.start()
    try:
        node.serve()
        assert late.is_alive()
    finally:
        sent.join()
        late.cancel()
        signal.signal(signal.SIGUSR2, handler)
    assert signal.set_wakeup_fd(-1) == -1


def test_a_child_of_files_ends_when_they_are_read(tree: Threads, tmp_path: Path) -> None:
    pq.write_table(events(0, 0, 100), tmp_path / "events.parquet")
    root = tree.root(children=("a",))
    child = tree.child("a", root, inputs=(FileInputConfig(tmp_path / "events.parquet"),))
    child.join()
    assert not child.running
    wait_until(lambda: 100 in tree.ends())
    wait_until(lambda: not root.metrics().children["a"])


def test_a_node_that_leaves_is_not_waited_for(tree: Threads) -> None:
    root = tree.root(children=("a", "b"))
    leaves, stays = tree.child("a", root), tree.child("b", root)
    tree.sensor(leaves, "0").push(events(0, 0, 25))
    tree.sensor(stays, "1").push(events(1, 0, 105))
    wait_until(lambda: {10, 20} <= tree.ends())
    assert 40 not in tree.ends()
    leaves.leave()
    leaves.join()
    wait_until(lambda: {30, 100} <= tree.ends())


def test_the_root_leaves_once_all_below_have_left(tree: Threads, tmp_path: Path) -> None:
    pq.write_table(events(0, 0, 100), tmp_path / "events.parquet")
    root = tree.root(children=("a",))
    child = tree.child("a", root, inputs=(FileInputConfig(tmp_path / "events.parquet"),))
    child.join()
    root.leave()
    root.join()
    assert 100 in tree.ends()


def test_a_function_that_fails_stops_the_root_and_its_error_is_raised(tmp_path: Path) -> None:
    def fail(rows: pa.Table, number: int) -> None:
        raise ZeroDivisionError

    with threads(tmp_path) as tree:
        pq.write_table(events(0, 0, 100), tmp_path / "events.parquet")
        root = Node(tree.config("root", "root", listen=HERE), on_rows=fail)
        root.start()
        tree.child("a", root, inputs=(FileInputConfig(tmp_path / "events.parquet"),))
        with pytest.raises(ZeroDivisionError):
            root.join()
        # A new root takes the rows from the log.
        tree.root()
        wait_until(lambda: 90 in tree.ends())


def test_a_node_keeps_what_the_log_above_does_not_hold(
    tree: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[pa.Table] = []
    root = Node(
        tree.config("root", "root", listen=HERE),
        on_rows=lambda rows, number: seen.append(rows),
        pace=QUICK,
    )
    root.start()
    sensor = tree.sensor(tree.child("a", root))
    sensor.push(events(0, 0, 100))
    wait_until(lambda: seen)
    arrived: list[bytes] = []
    append, commit = Journal.append, Journal.commit

    def notes(journal: Journal, *records: bytes) -> None:
        append(journal, *records)
        arrived.extend(records if journal.folder == root.config.log else ())

    def fails(journal: Journal) -> None:
        if journal.folder == root.config.log and arrived:
            raise JournalError("the disk is full")
        commit(journal)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", notes)
        patched.setattr(Journal, "commit", fails)
        sensor.push(events(0, 100, 200))
        with pytest.raises(JournalError):
            root.join()
    tree.root(listen=root.address)
    sensor.push(events(0, 200, 300))
    wait_until(lambda: 290 in tree.ends())
    assert set(range(110, 300, 10)) <= tree.ends()


def test_a_child_stops_reading_when_its_parent_does_not_answer(tree: Threads) -> None:
    root = tree.root()
    assert root.address is not None
    limits = LimitsConfig(waiting_bytes=2_000)
    child = tree.child("a", root, limits=limits)
    sensor = tree.sensor(child, most_bytes=3_000)
    sensor.push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())
    root.stop()
    root.join()
    with pytest.raises(SensorTimeout):
        for start in range(100, 100_000, 10):
            sensor.push(events(0, start, start + 10), timeout=1.0)
    assert child.metrics().queued_bytes < 20_000
    tree.root(listen=root.address)
    sensor.flush()
    wait_until(lambda: start - 10 in tree.ends())


def test_a_node_whose_parent_is_away_rests(tree: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float] = []
    turn = Loop.turn

    def counted(loop: Loop) -> None:
        turns.append(time.monotonic())
        turn(loop)

    root = tree.root()
    monkeypatch.setattr(Loop, "turn", counted)
    tree.sensor(tree.child("a", root)).push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())
    root.stop()
    root.join()

    def rests() -> bool:
        turns.clear()
        time.sleep(2 * QUICK.retry)
        return len(turns) < 50

    wait_until(rests)


def test_a_node_that_sends_too_often_is_slowed_down(tree: Threads) -> None:
    root = tree.root(limits=LimitsConfig(messages_per_second=8.0))
    child = tree.child("a", root)
    sensor = tree.sensor(child)
    at = 0

    def falls_behind() -> bool:
        nonlocal at
        sensor.push(events(0, at, at + 10))
        sensor.flush()
        at += 10
        return child.metrics().queued_messages >= 10

    wait_until(falls_behind)
    wait_until(lambda: at - 10 in tree.ends())
    wait_until(lambda: child.metrics().queued_messages == 0)


def test_the_whole_tree_can_be_looked_at(tree: Threads) -> None:
    port = free_port()
    root = tree.root(status=f"tcp://127.0.0.1:{port}")
    assert root.address is not None
    middle = tree.node("m", "merge", parent=Parent(root.address), listen=HERE)
    tree.child("a", middle)
    lines: list[NodeLine] = []

    def all_are_there() -> bool:
        lines[:] = ask_status(f"tcp://127.0.0.1:{port}", patience=PATIENCE)
        return len(lines) == 3

    wait_until(all_are_there)
    assert [(line.node, line.role, line.depth) for line in lines] == [
        ("root", "root", 0),
        ("m", "merge", 1),
        ("a", "child", 2),
    ]


def test_prometheus_sees_a_node(tree: Threads) -> None:
    port = free_port()
    root = tree.root(metrics=f"127.0.0.1:{port}")
    tree.sensor(tree.child("a", root)).push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())

    def seen() -> str:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return answer.read().decode()

    wait_until(lambda: 'paneflow_child_up{child="a",node="root",role="root"} 1.0' in seen())


def test_small_batches_of_many_sensors_give_the_same_rows(tree: Threads) -> None:
    child = tree.child("a", tree.root())
    sensors = [tree.sensor(child, str(k)) for k in range(5)]
    for start in range(0, 200, 5):
        for k, sensor in enumerate(sensors):
            sensor.push(events(k, start, start + 5))
    for sensor in sensors:
        sensor.end()
    right = QUERY.over(pa.concat_tables([events(k, 0, 200) for k in range(5)]))
    wait_until(lambda: sum(map(len, tree.rows.values())) == right.num_rows)
    question = Question(QUERY, SCHEMA)
    rows = in_order(pa.concat_tables(tree.rows.values()), question)
    assert_same_rows(QUERY, rows.drop_columns(COMPLETE), in_order(right, question))


def test_a_batch_that_cannot_be_cut_is_left_out_alone(
    tree: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    child = tree.child("a", tree.root())
    good, bad = tree.sensor(child, "0"), tree.sensor(child, "1")
    far = pa.table({"t": [2**62], "k": ["x"], "v": [1]}, SCHEMA)
    for start in range(0, 100, 10):
        good.push(events(0, start, start + 10))
        bad.push(events(1, start, start + 10))
        bad.push(far)
    bad.flush()
    wait_until(lambda: 90 in tree.ends())
    wait_until(lambda: child.metrics().refused == 10)
    assert child.metrics().events == 200
    wait_until(lambda: "a batch was refused" in caplog.messages)


def test_a_report_that_is_too_large_for_a_message_goes_in_several(tree: Threads) -> None:
    limits = LimitsConfig(message_bytes=4_000)
    root = tree.root(limits=limits)
    child = tree.child("a", root, limits=limits)
    tree.sensor(child).push(events(0, 0, 10_000))
    wait_until(lambda: 9_990 in tree.ends())
    assert child.metrics().reports > 10
    rows = pa.concat_tables(tree.rows.values())
    assert (
        sum(rows.filter(pc.equal(rows["window"].cast("string"), "ten"))["n"].to_pylist()) == 9_990
    )


def test_what_is_wrong_with_an_input_leaves_nothing_open(tree: Threads) -> None:
    root = tree.root()
    assert root.address is not None
    inputs = (ZmqInputConfig(HERE), ZmqInputConfig(root.address))
    with pytest.raises(AddressError, match="cannot be used"):
        tree.child("a", root, inputs=inputs)
    goes_on(tree, root)


def test_a_patience_shorter_than_signs_of_life_is_refused(tree: Threads) -> None:
    with pytest.raises(ConfigError, match="too short"):
        tree.root(patience=0.1)


def test_slices_of_the_root_make_the_same_rows(tree: Threads, tmp_path: Path) -> None:
    pq.write_table(events(0, 0, 100), tmp_path / "events.parquet")
    root = tree.root(children=("a",), outputs=(SlicesOutputConfig(tmp_path / "slices"),))
    tree.child("a", root, inputs=(FileInputConfig(tmp_path / "events.parquet"),)).join()
    root.leave()
    root.join()
    rows = QUERY.finish(read_slices(tmp_path / "slices"))
    assert_same_rows(QUERY, rows, QUERY.over(events(0, 0, 100)))
