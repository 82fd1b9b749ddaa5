"""Whatever the order of their steps, threads see a W-Hive that does one thing after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paneflow import windows as W
from paneflow.engines.multicore.multiway.hive_memory import LINE
from paneflow.engines.multicore.ticks import AFTER_ALL
from tests.multicore.multiway.hive_model import HiveState, Next, Operation, Pass, Update
from tests.multicore.multiway.interleaving import Case, Steps, Thread, at_once, outcomes
from tests.multicore.multiway.linearizability import is_linearizable
from tests.multicore.multiway.stepping_hive import LEVELS, SteppingHive, stepping

TUMBLING = W.tumbling(2)
SLIDING = W.sliding(4, 2)
AS_COMPILED = stepping()


def winsets_of(window: W.Sliding) -> Callable[[int], tuple[int, ...]]:
    return lambda t: tuple(
        window.offset.value + number * window.slide.value for number in window.assigned(t)
    )


def explore(
    scripts: list[list[Operation]],
    *,
    window: W.Sliding = TUMBLING,
    writers: int = 2,
    before: tuple[Operation, ...] = (),
    nodes: int = 16,
    names: dict[str, Any] | None = None,
) -> int:
    """Check every way in which scripts can be interleaved; how many different ends there are."""
    named = names or AS_COMPILED
    fresh = HiveState.fresh(writers, winsets_of(window))
    begun = fresh

    def make() -> tuple[Case, SteppingHive]:
        nonlocal begun
        hive, begun = SteppingHive(named, window, writers, nodes), fresh
        for operation in before:
            after = begun.after(operation, at_once(hive.begin(operation)))
            assert after is not None
            begun = after
        threads = [Thread(_begun(hive, script)) for script in scripts]
        return Case(list(hive.memory), threads), hive

    ends = 0
    for case, hive in outcomes(make):
        ends += 1
        threads = [list(thread.done) for thread in case.threads]
        assert is_linearizable(begun, threads), threads
        _check_rest(hive, begun, threads, writers)
    return ends


def _begun(hive: SteppingHive, script: list[Operation]) -> list[tuple[Any, Callable[[], Steps]]]:
    return [(operation, lambda op=operation: hive.begin(op)) for operation in script]


def _check_rest(hive: SteppingHive, state: HiveState, threads: Any, writers: int) -> None:
    """Whatever was not taken is taken once all writers have passed: nothing is lost or twice."""
    taken: list[Any] = []
    for event in (event for thread in threads for event in thread):
        if isinstance(event.operation, Next):
            taken += event.result
        else:
            after = state.after(event.operation, event.result)
            assert after is not None
            state = after
    for writer in range(writers):
        at_once(hive.begin(Pass(writer, AFTER_ALL)))
    rest: list[Any] = []
    while more := at_once(hive.begin(Next(1))):
        rest += more
    assert rest == sorted(rest), rest
    taken += rest
    assert sorted(taken) == sorted((n, key, count) for (n, key), count in state.windows)


def test_two_writers_make_the_same_winset() -> None:
    assert explore([[Update(0, 1, 7)], [Update(1, 1, 7)]]) > 1


def test_two_writers_make_neighbouring_winsets() -> None:
    explore([[Update(0, 1, 7)], [Update(1, 3, 7)]], before=(Update(0, 9, 7),))


@pytest.mark.long
def test_two_writers_update_overlapping_windows() -> None:
    explore([[Update(0, 1, 7)], [Update(1, 3, 8)]], window=SLIDING)


def test_an_output_among_writers() -> None:
    explore([[Update(0, 1, 7), Pass(0, 2)], [Pass(1, 2)], [Next(9)]])


@pytest.mark.long
def test_an_output_among_writers_of_different_winsets() -> None:
    before = (Pass(0, 0), Update(1, 3, 7))
    explore([[Update(0, 1, 7), Pass(0, 4)], [Pass(1, 4)], [Next(9)]], before=before)


def test_a_writer_links_behind_the_winset_that_is_taken() -> None:
    before = (Update(0, 1, 7), Update(0, 5, 7), Pass(0, 2), Pass(1, 2))
    explore([[Update(0, 3, 7), Pass(0, 4)], [Next(1), Next(1)]], before=before)


def test_two_writers_fill_a_table_and_add_another() -> None:
    explore([[Update(0, 1, 500)], [Update(1, 1, 501)]], before=FULL)


FULL = tuple(Update(0, 1, 8 * k) for k in range(15))
TAKEN = (Update(0, 1, 7), Update(0, 5, 7), Pass(0, 2), Pass(1, 2), Next(9), Pass(0, 6), Pass(1, 6))
REUSING: list[list[Operation]] = [[Update(0, 9, 7)], [Next(9), Update(1, 13, 8)]]


def test_places_are_used_again_while_others_look_around() -> None:
    explore(REUSING, before=TAKEN)


def reuse_at_once(memory: Any, retired: Any) -> Steps:
    """As `reclaim`, but without a look at who is inside."""
    while retired.ends[0] < retired.ends[1]:
        node = retired.nodes[retired.ends[0] % len(retired.nodes)]
        yield from AS_COMPILED["give_back"](memory.spare, 0, memory.below_node, node)
        retired.ends[0] += 1


def among_the_announced(memory: Any, least: int) -> Steps:
    """As `first_final`, but with the question that the paper asks, in the paper's order."""
    yield
    first = memory.links[memory.heads[0] * LEVELS]
    yield
    if first == 0 or memory.number[first] in memory.progress[::LINE]:
        return 0
    return first


def always(cells: Any, index: int, expected: int, new: int) -> Steps:
    """As `exchange`, but without a look at what is there."""
    yield
    cells[index] = new
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "scripts", "before"),
    [
        ({"reclaim": reuse_at_once}, REUSING, TAKEN),
        (
            {"first_final": among_the_announced},
            [[Update(0, 1, 7)], [Next(1)]],
            (Pass(0, 0), Update(1, 3, 7), Pass(1, 4), Pass(0, 0)),
        ),
        ({"exchange": always}, [[Update(0, 1, 7)], [Update(1, 1, 7)]], ()),
    ],
    ids=["places used again too early", "the check of the paper", "no compare before swap"],
)
def test_a_mistake_would_be_noticed(
    broken: dict[str, Any], scripts: list[list[Operation]], before: tuple[Operation, ...]
) -> None:
    explore(scripts, before=before)
    with pytest.raises(AssertionError):
        explore(scripts, before=before, names=stepping(**broken))
