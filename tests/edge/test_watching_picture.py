"""The picture of a tree: what heartbeats carry, and which nodes are shown as dead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paneflow.engines.edge.watching.picture import TreePicture

PATIENCE = 10.0


def shape(picture: TreePicture, now: float) -> list[tuple[int, str, bool]]:
    return [(line.depth, line.node, line.alive) for line in picture.lines(now)]


Watched = tuple[str, TreePicture, float]
"""A node, its picture, and what its clock shows."""


def pass_on(sender: Watched, receiver: Watched) -> None:
    """Send a heartbeat, through JSON."""
    (below, sent, then), (here, taken, now) = sender, receiver
    taken.take_all(json.loads(json.dumps(sent.carried(then, below))), here, now)


def test_nodes_stand_below_their_parents() -> None:
    picture = TreePicture(PATIENCE)
    for node, parent in [("b2", "b"), ("a1", "a"), ("top", None), ("b", "top"), ("a", "top")]:
        picture.take(node, parent, {}, 0.0)
    assert [(depth, node) for depth, node, _ in shape(picture, 1.0)] == [
        (0, "top"),
        (1, "a"),
        (2, "a1"),
        (1, "b"),
        (2, "b2"),
    ]


def test_a_node_without_news_is_shown_as_dead_and_returns() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {"at": 0.0}, 0.0)
    picture.take("a", "top", {"at": 0.0}, 0.0)
    picture.take("top", None, {"at": 15.0}, 15.0)
    assert shape(picture, 15.0) == [(0, "top", True), (1, "a", False)]
    assert picture.lines(15.0)[1].age == 15.0
    picture.take("a", "top", {"at": 16.0}, 16.0)
    assert shape(picture, 16.0) == [(0, "top", True), (1, "a", True)]


def test_a_node_that_never_came_is_shown_as_dead_until_it_comes() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {}, 0.0)
    picture.expect("a", "top")
    line = picture.lines(1.0)[1]
    assert (line.node, line.alive, line.age, line.depth) == ("a", False, None, 1)
    picture.take("a", "top", {}, 2.0)
    assert shape(picture, 2.0) == [(0, "top", True), (1, "a", True)]


def test_a_node_that_says_goodbye_is_not_shown() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {}, 0.0)
    picture.expect("a", "top")
    picture.take("a", "top", {}, 0.0)
    picture.forget("a")
    assert shape(picture, 0.0) == [(0, "top", True)]


def test_rates_follow_from_two_heartbeats_and_the_clock_of_the_node() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("a", None, {"at": 100.0, "events": 1000, "in": 50}, 7.0)
    assert picture.lines(7.0)[0].events_per_second == 0
    picture.take("a", None, {"at": 102.0, "events": 5000, "in": 50, "out": 30}, 10.0)
    (line,) = picture.lines(10.0)
    assert (line.events_per_second, line.in_per_second, line.out_per_second) == (2000, 0, 15)
    assert picture.lines(100.0)[0].events_per_second == 0, "a dead node does nothing"


def test_a_node_that_restarts_counts_from_zero() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("a", None, {"at": 100.0, "events": 10**9}, 0.0)
    picture.take("a", None, {"at": 102.0, "events": 500}, 2.0)
    assert picture.lines(2.0)[0].events_per_second == 250


@pytest.mark.parametrize("back", [0.0, 50.0], ids=["no clock", "a clock put back"])
def test_without_a_clock_that_grows_rates_follow_from_when_news_came(back: float) -> None:
    first, second = ({"at": 100.0}, {"at": back}) if back else ({"at": 0.0}, {"at": 0.0001})
    picture = TreePicture(PATIENCE)
    picture.take("a", None, first | {"events": 0}, 0.0)
    picture.take("a", None, second | {"events": 100}, 2.0)
    assert picture.lines(2.0)[0].events_per_second == pytest.approx(50 if back else 1_000_000)


def test_news_that_is_passed_on_twice_counts_once() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("a", None, {"at": 100.0, "events": 0}, 0.0)
    picture.take("a", None, {"at": 101.0, "events": 700}, 1.0)
    picture.take("a", None, {"at": 101.0, "events": 700}, 1.01)
    assert picture.lines(1.02)[0].events_per_second == 700


def test_older_news_from_a_former_parent_is_left_out() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {}, 0.0)
    picture.take("a", "new", {"at": 105.0, "events": 5}, 5.0)
    picture.take("new", "top", {}, 5.0)
    picture.take_all([{"node": "a", "parent": "old", "at": 101.0, "age": 5.0}], "top", 6.0)
    assert (2, "a", True) in shape(picture, 6.0)


def test_the_root_sees_the_whole_tree_with_clocks_that_differ() -> None:
    plug, house, street = (TreePicture(PATIENCE) for _ in range(3))
    for step in range(3):
        plug.take("plug", None, {"at": 1e9 + step, "role": "child", "events": 40 * step}, step)
        pass_on(("plug", plug, step), ("house", house, 500.0 + step))
        house.take("house", None, {"at": 500.0 + step, "role": "merge"}, 500.0 + step)
        pass_on(("house", house, 500.25 + step), ("street", street, 7000.0 + step))
        street.take("street", None, {"at": 7000.0 + step, "role": "root"}, 7000.0 + step)
    lines = street.lines(7003.0)
    assert [(line.depth, line.node, line.role) for line in lines] == [
        (0, "street", "root"),
        (1, "house", "merge"),
        (2, "plug", "child"),
    ]
    assert lines[2].events_per_second == 40
    assert lines[2].age == 1.25

    # The plug dies: its news grows old on the way, although the house still passes it on.
    house.take("house", None, {"at": 515.0, "role": "merge"}, 515.0)
    pass_on(("house", house, 515.0), ("street", street, 7015.0))
    street.take("street", None, {"at": 7015.0, "role": "root"}, 7015.0)
    assert shape(street, 7015.0) == [(0, "street", True), (1, "house", True), (2, "plug", False)]


def test_a_node_that_a_merging_node_expects_is_seen_by_the_root() -> None:
    house, street = TreePicture(PATIENCE), TreePicture(PATIENCE)
    house.take("house", None, {}, 0.0)
    house.expect("plug", "house")
    street.take("street", None, {}, 0.0)
    pass_on(("house", house, 0.0), ("street", street, 0.0))
    assert shape(street, 0.0) == [(0, "street", True), (1, "house", True), (2, "plug", False)]


@pytest.mark.parametrize(
    "item",
    [
        None,
        [],
        {},
        {"node": 5},
        {"node": "x", "age": "old"},
        {"node": "x", "age": float("nan")},
        {"node": "x", "age": -5.0},
        {"node": "x", "parent": 7},
        {"node": "x", "events": "many"},
        {"node": "x", "at": None},
    ],
    ids=str,
)
def test_what_makes_no_sense_in_a_heartbeat_is_left_out(item: Any) -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {}, 0.0)
    picture.take_all([item, {"node": "a", "age": 0.0}], "top", 1.0)
    assert shape(picture, 1.0) == [(0, "top", True), (1, "a", True)]


def test_nodes_that_name_each_other_as_parents_do_not_hang_the_picture() -> None:
    picture = TreePicture(PATIENCE)
    picture.take("top", None, {}, 0.0)
    picture.take("a", "b", {}, 0.0)
    picture.take("b", "a", {}, 0.0)
    assert shape(picture, 0.0) == [(0, "top", True)]
