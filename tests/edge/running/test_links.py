"""Links that are cut, stalled, delayed, damaged or out of order cost time, and never a row."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.edge.running.events import check, push, sensors
from tests.edge.running.proxy import Proxy
from tests.edge.running.real_trees import RealTree
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

Grow = Callable[..., RealTree]


@pytest.fixture
def linked(grow: Grow) -> Iterator[tuple[RealTree, dict[str, Proxy]]]:
    """A tree whose links all lead through proxies."""
    tree = grow()
    with ExitStack() as stack:
        proxies = {}
        for child, above in tree.above.items():
            proxy = stack.enter_context(Proxy(tree.settings[above]["listen"]))
            tree.link(child, proxy.address)
            proxies[child] = proxy
        tree.start()
        yield tree, proxies


Linked = tuple[RealTree, dict[str, Proxy]]


def test_cut_links_heal(linked: Linked) -> None:
    tree, proxies = linked
    sources = sensors(tree)
    at = 0
    for child, proxy in proxies.items():
        push(sources, at, at + 50)
        wait_until(partial(tree.logged, child, "the parent lets this node in"))
        proxy.cut()
        push(sources, at + 50, at + 100)
        proxy.heal()
        wait_until(partial(tree.logged, child, "the connection to the parent is gone"))
        at += 100
    check(tree, sources, at)


def test_a_link_that_holds_everything_back_delivers_it_later(linked: Linked) -> None:
    tree, proxies = linked
    sources = sensors(tree)
    push(sources, 0, 100)
    proxies["m"].stall()
    push(sources, 100, 200)
    proxies["m"].heal()
    check(tree, sources, 200)


def test_what_a_node_sent_before_it_connected_anew_may_arrive_late(linked: Linked) -> None:
    tree, proxies = linked
    sources = sensors(tree)
    at = 0
    for child, proxy in proxies.items():
        push(sources, at, at + 50)
        let_in = partial(tree.logged, child, "the parent lets this node in")
        wait_until(let_in)
        before = len(let_in())
        proxy.stall()
        push(sources, at + 50, at + 100)
        proxy.overtake()
        wait_until(lambda let_in=let_in, before=before: len(let_in()) > before)
        push(sources, at + 100, at + 150)
        proxy.heal()
        at += 150
    check(tree, sources, at)


def test_a_slow_link_changes_no_row(linked: Linked) -> None:
    tree, proxies = linked
    for proxy in proxies.values():
        proxy.delay = 0.01
    sources = sensors(tree)
    push(sources, 0, 200)
    check(tree, sources, 200)


def test_damaged_messages_are_refused_and_sent_again(linked: Linked) -> None:
    tree, proxies = linked
    sources = sensors(tree)
    at = 0
    while not tree.logged("m", "a message was refused"):
        push(sources, at, at + 100)
        proxies["a"].damage()
        at += 100
    check(tree, sources, at)


@pytest.mark.parametrize("seed", range(2))
def test_links_in_random_trouble_lose_nothing(linked: Linked, seed: int) -> None:
    check_links(linked, seed, troubles=10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_hundred_troubles_of_links(linked: Linked, seed: int) -> None:
    check_links(linked, seed, troubles=10)


def check_links(linked: Linked, seed: int, troubles: int) -> None:
    tree, proxies = linked
    r = random.Random(seed)
    sources = sensors(tree)
    at = 0
    for _ in range(troubles):
        proxy = r.choice(list(proxies.values()))
        r.choice([proxy.cut, proxy.stall, proxy.damage, proxy.overtake])()
        proxy.delay = r.choice([0.0, 0.0, 0.005])
        push(sources, at, at + 40)
        at += 40
        time.sleep(r.random() * 0.1)
        proxy.heal()
    for proxy in proxies.values():
        proxy.delay = 0.0
    check(tree, sources, at)
