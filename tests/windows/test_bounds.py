"""Extent, mapping and edges: where windows lie, checked against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paneflow import windows as W
from paneflow.windows import Window
from paneflow.windows.many_rows import overlap

lengths = st.integers(1, 30)
moments = st.integers(-100, 100)


@given(lengths, lengths, moments, moments)
def test_sliding_maps_an_event_to_the_windows_around_it(r: int, s: int, o: int, t: int) -> None:
    by_definition = [w for w in range(-250, 250) if o + w * s <= t < o + w * s + r]
    assert list(W.sliding(r, s, offset=o).assigned(t)) == by_definition


@given(lengths, lengths, st.integers(0, 100))
def test_count_maps_a_position_to_the_windows_around_it(n: int, s: int, i: int) -> None:
    by_definition = [w for w in range(150) if w * s <= i < w * s + n]
    assert list(W.count(n, s).assigned(i)) == by_definition


@given(lengths, lengths, moments)
def test_no_event_is_in_more_windows_than_overlap(r: int, s: int, o: int) -> None:
    window = W.sliding(r, s, offset=o)
    assert overlap(window) == max(len(window.assigned(t)) for t in range(o, o + s))


def cut(edges: tuple[tuple[int, int], ...], t: int) -> bool:
    return any((t - phase) % step == 0 for phase, step in edges)


@given(lengths, lengths, moments)
def test_slices_are_cut_exactly_where_windows_begin_or_end(r: int, s: int, o: int) -> None:
    window = W.sliding(r, s, offset=o)
    bounds = {b for w in range(-300, 300) for b in window.extent(w, 0, 0)}
    for t in range(-100, 100):
        assert cut(window.edges, t) == (t in bounds)
    assert all(0 <= phase < step for phase, step in window.edges)
    assert len(set(window.edges)) == len(window.edges)


def test_edges_of_count_windows_are_positions() -> None:
    assert W.count(3, 2).edges == ((0, 2), (1, 2))
    assert W.count(4, 2).edges == ((0, 2),)


@pytest.mark.parametrize(
    ("window", "extent"),
    [
        (W.sliding(4, 2), (6, 10)),
        (W.sliding(4, 2, offset=-1), (5, 9)),
        (W.tumbling(5), (15, 20)),
        (W.count(3), (7, 9)),
        (W.session(2), (7, 11)),
        (W.slide_by_tuple(4, 2), (7, 9)),
        (W.slide_by_time(2, 5), (7, 20)),
        (W.slide_by_time(2, 5, offset=1), (7, 21)),
        (W.delta("d", 8, 3), (7, 9)),
        (W.punctuation("p"), (7, 9)),
    ],
    ids=str,
)
def test_extent_of_window_3_with_events_from_7_to_9(
    window: Window, extent: tuple[int, int]
) -> None:
    assert window.extent(3, 7, 9) == extent

    seq, first, last = (np.array([n, n], np.int64) for n in (3, 7, 9))
    start, end = window.extent(seq, first, last)
    assert start.dtype == end.dtype == np.int64
    assert (start.tolist(), end.tolist()) == ([extent[0]] * 2, [extent[1]] * 2)
