"""Ctrl-C at any moment, and fork: a stream goes on or says why not, and never hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from tests.waiting import PATIENCE

STRATEGIES = ["auto", *BY_NAME]
QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
HANGS = 900
"""Seconds after which a process is ended; by itself it says before where it hangs."""


def python(*arguments: str) -> str:
    """What a process prints; it must end, and well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=HANGS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.processes
def test_interrupts_at_random_moments_hang_nothing_and_change_no_row() -> None:
    module = ["-m", "tests.multicore.interrupted"]
    shown = python(*module, ",".join(STRATEGIES), "2", "56", "1")
    counted = dict(line.split() for line in shown.splitlines())
    assert list(counted) == STRATEGIES
    assert sum(map(int, counted.values())) >= 500


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_five_hundred_interrupts_of_each_strategy(strategy: str, workers: str) -> None:
    python("-m", "tests.multicore.interrupted", strategy, workers, "500", "2")


@pytest.fixture
def raised() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as it does unless somebody has asked for something else."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_in_a_section_is_raised_at_its_end(raised: None) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), put_off:
        interrupt()
        with put_off:
            interrupt()
        done.append("everything")
    assert done == ["everything"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with put_off:
        pass


def test_an_interrupt_behind_an_error_in_a_section_is_raised(raised: None) -> None:
    with pytest.raises(KeyboardInterrupt) as caught, put_off:
        interrupt()
        raise LookupError
    assert isinstance(caught.value.__context__, LookupError)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_is_set_is_called_at_the_end_of_a_section(raised: None) -> None:
    called = []
    signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    with put_off:
        interrupt()
        assert called == []
    assert called == [signal.SIGINT]


def test_interrupts_that_are_ignored_stay_so(raised: None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with put_off:
        interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_sections_of_other_threads_put_nothing_off(raised: None) -> None:
    inside, leave = threading.Event(), threading.Event()

    def section() -> None:
        with put_off:
            inside.set()
            leave.wait(PATIENCE)

    thread = threading.Thread(target=section)
    thread.start()
    inside.wait(PATIENCE)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    leave.set()
    thread.join()


def test_a_waiter_whose_time_is_up_waits_no_longer() -> None:
    lock = threading.RLock()
    waiters = Waiters(lock)
    waiters.sleep(waiters.enrol(), 0.001)
    assert len(waiters) == 0
    waiter = waiters.enrol()
    waiters.wake()
    assert len(waiters) == 0
    waiters.sleep(waiter)  # it has been woken before


def test_rows_that_a_reader_was_about_to_get_are_given_again(
    raised: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Outbox.read

    def interrupted(box: Outbox, wait: float, into: list[pa.Table]) -> None:
        read(box, wait, into)
        interrupt()

    with QUERY.open() as stream:
        stream.push(pa.table({"t": range(100), "v": [1] * 100}))
        stream.finish()
        with monkeypatch.context() as patch:
            patch.setattr(Outbox, "read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                list(stream.results())
        assert pa.concat_tables(stream.results())["sum"].to_pylist() == [10] * 10
        assert list(stream.results()) == []


FORKED = """
import os, signal, sys
import pyarrow as pa
import paneflow as pf
from paneflow import aggregates as A, windows as W

signal.alarm(300)  # kills what hangs
query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
events = pa.table({"t": range(100), "v": [1] * 100})

def refused(call):
    try:
        call()
    except pf.PaneflowError as error:
        assert f"opened in process {os.getppid()}" in str(error), error
    else:
        raise AssertionError(call)

def child(stream):
    signal.alarm(300)
    calls = [stream.finish, stream.close, stream.metrics, lambda: stream.push(events)]
    for call in [*calls, lambda: list(stream.results()), lambda: stream.end_source(0)]:
        refused(call)
    with query.open(workers=2) as another:  # here is no parent's thread in the way
        another.push(events)
        another.finish()
        assert sum(rows.num_rows for rows in another.results()) == 10

with query.open(workers=int(sys.argv[1])) as stream:
    stream.push(events)
    rows = next(stream.results(300)).num_rows  # nothing is being compiled any more
    pid = os.fork()
    if pid == 0:
        child(stream)
        sys.exit()  # leaves the block, and ends what nobody has ended
    assert os.waitpid(pid, 0)[1] == 0
    stream.finish()
    assert rows + sum(more.num_rows for more in stream.results()) == 10
"""


@pytest.mark.processes
@pytest.mark.parametrize("workers", ["1", "3"])
def test_an_inherited_stream_raises_after_a_fork(workers: str) -> None:
    python("-c", FORKED, workers)
