"""The rule that chooses a merge algorithm for a stream: every branch, and what it promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paneflow.merging import MERGERS, pba
from paneflow.planning import merge_choice
from paneflow.planning.merge_choice import Stream, choose_stream_merge

LONG = Stream(slices=1 << 16)
EXPENSIVE = replace(LONG, combine_ns=merge_choice.WORTH_SHARING, cores=2)

CHOICES: dict[str, tuple[Stream, str]] = {
    "late slices": (replace(LONG, late=1, invertible=True), "fiba"),
    "a slice in few windows": (Stream(slices=30, slide=10, invertible=True), "recalculate"),
    "a slice in one more": (Stream(slices=31, slide=10), "sba"),
    "exactly invertible": (replace(LONG, invertible=True, selective=True), "subtract"),
    "selective": (replace(LONG, selective=True), "sba"),
    "selective and expensive": (replace(EXPENSIVE, selective=True), "slick_deque"),
    "selective and expensive, no slide may be slow": (
        replace(EXPENSIVE, selective=True, goal="latency"),
        "pba",
    ),
    "no law at all": (LONG, "sba"),
    "no slide may be slow": (replace(LONG, goal="latency"), "daba"),
    "no slide may be slow, selective": (replace(LONG, goal="latency", selective=True), "daba"),
    "expensive": (EXPENSIVE, "pba"),
    "expensive, no slide may be slow": (replace(EXPENSIVE, goal="latency"), "pba"),
    "expensive, one core": (replace(EXPENSIVE, cores=1), "sba"),
    "expensive, few slices": (replace(EXPENSIVE, slices=merge_choice.WORTH_A_THREAD - 1), "sba"),
    "expensive, makes arrays": (replace(EXPENSIVE, merges_in_place=False), "sba"),
    "not expensive enough": (
        replace(EXPENSIVE, combine_ns=merge_choice.WORTH_SHARING - 0.1),
        "sba",
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_a_stream_gets_its_algorithm(case: str) -> None:
    stream, expected = CHOICES[case]
    name, reason = choose_stream_merge(stream)
    assert name == expected
    assert name in MERGERS
    assert reason


def test_planning_and_merging_agree_on_a_second_thread() -> None:
    """Neither room imports the other, so both have the figures."""
    assert merge_choice.WORTH_SHARING == pba.WORTH_SHARING
    assert merge_choice.WORTH_A_THREAD == 2 * pba.WORTH_A_THREAD
