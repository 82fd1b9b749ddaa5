"""Trees of real processes give the rows of all events, whatever is killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.edge.running.events import check, push, sensors
from tests.edge.running.killer import check_kills
from tests.edge.running.real_trees import RealTree

pytestmark = pytest.mark.processes

Grow = Callable[..., RealTree]


def test_a_tree_of_processes_gives_the_rows_of_all_events(grow: Grow) -> None:
    tree = grow()
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 300)
    check(tree, sources, 300)


def test_a_deep_tree_gives_the_rows_of_all_events(grow: Grow) -> None:
    tree = grow({"root": ["m", "c"], "m": ["n"], "n": ["a", "b"]})
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 100)
    check(tree, sources, 100)


@pytest.mark.parametrize("name", ["root", "m", "a"])
def test_a_killed_node_goes_on_where_it_was(grow: Grow, name: str) -> None:
    tree = grow()
    tree.start()
    sources = sensors(tree)
    for start in range(0, 300, 100):
        push(sources, start, start + 100)
        tree.kill(name)
        tree.start(name)
    check(tree, sources, 300)


def test_a_stopped_tree_goes_on_where_it_was(grow: Grow) -> None:
    tree = grow()
    sources = sensors(tree)
    for start in range(0, 200, 100):
        tree.start()
        push(sources, start, start + 100)
        for name in tree.names:
            tree.stop(name)
    tree.start()
    check(tree, sources, 200)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_killed_at_random_neither_lose_nor_repeat_rows(grow: Grow, seed: int) -> None:
    check_kills(grow(), seed, kills=8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 110))
def test_two_hundred_kills(grow: Grow, seed: int) -> None:
    check_kills(grow({"root": ["m", "n"], "m": ["a", "b"], "n": ["c"]}), seed, kills=20)
