"""Large blocks of memory are used again, and never while anybody holds them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from paneflow.merging.machine import spare

COUNT = spare.LARGE // 4


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    spare.forget()
    yield
    spare.forget()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_block_that_nobody_holds_is_used_again() -> None:
    first = spare.empty((COUNT,), np.int32)
    place = address(first)
    del first
    assert address(spare.empty((COUNT // 2, 2), np.int32)) == place
    assert address(spare.empty((COUNT // 2,), np.float64)) == place


def test_a_block_is_not_lent_again_while_a_view_of_it_is_held() -> None:
    first = spare.empty((COUNT,), np.int32)
    place = address(first)
    row = first.reshape(-1, 16)[5]
    row[:] = 7
    del first
    second = spare.empty((COUNT,), np.int32)
    second[:] = 0
    assert address(second) != place
    assert (row == 7).all()


def test_a_block_is_not_lent_again_while_arrow_holds_it() -> None:
    first = spare.empty((COUNT,), np.int32)
    first[:] = 7
    held = pa.array(first)
    del first
    spare.empty((COUNT,), np.int32)[:] = 0
    assert held[COUNT - 1].as_py() == 7


def test_small_arrays_and_a_larger_one_than_was_kept_are_new() -> None:
    spare.empty((COUNT,), np.int32)  # kept from here on
    small = spare.empty((3, 2), np.int8)
    larger = spare.empty((2 * COUNT,), np.int32)
    assert (small.shape, small.dtype) == ((3, 2), np.int8)
    assert (larger.shape, larger.dtype) == ((2 * COUNT,), np.int32)
    larger[:] = 1
    assert larger.sum() == 2 * COUNT
