"""The rule that chooses a merge algorithm for the windows of a stream: every branch."""

from __future__ import annotations

import pytest

from paneflow import aggregates as A, windows as W
from paneflow.aggregates.operator import Operator
from paneflow.aggregates.values import Kind
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import AVAILABLE, FEW_COMBINES, SELDOM_LATE, choose_stream_merge
from paneflow.windows import Sliding

LONG = W.sliding(3600, 1)
OFTEN = SELDOM_LATE + 1


def operator(aggregate: A.Aggregate, kind: Kind) -> Operator:
    (found,) = aggregate.operators({"v": kind})
    return found


CHOICES: dict[str, tuple[Sliding, Operator | None, int, str]] = {
    "exactly invertible": (LONG, operator(A.sum("v"), Kind.INTEGER), 0, "subtract"),
    "only events to count": (LONG, None, 0, "subtract"),
    "sums of floats drift": (LONG, operator(A.sum("v"), Kind.FLOAT), 0, "daba"),
    "selective": (LONG, operator(A.max("v"), Kind.INTEGER), 0, "daba"),
    "late slices": (LONG, operator(A.max("v"), Kind.INTEGER), OFTEN, "fiba"),
    "late slices now and then": (LONG, operator(A.max("v"), Kind.INTEGER), SELDOM_LATE, "daba"),
    "late slices, invertible": (LONG, operator(A.sum("v"), Kind.INTEGER), OFTEN, "fiba"),
    "a slice in few windows": (
        W.sliding(FEW_COMBINES * 10, 10),
        operator(A.sum("v"), Kind.FLOAT),
        0,
        "recalculate",
    ),
    "late slices in few windows": (
        W.sliding(FEW_COMBINES * 10, 10),
        operator(A.sum("v"), Kind.FLOAT),
        OFTEN,
        "recalculate",
    ),
    "a slice in one more": (
        W.sliding(FEW_COMBINES * 10 + 1, 10),
        operator(A.sum("v"), Kind.FLOAT),
        0,
        "daba",
    ),
    "windows with gaps": (
        W.sliding(5, 10),
        operator(A.sum("v"), Kind.INTEGER),
        OFTEN,
        "recalculate",
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_a_stream_gets_its_algorithm(case: str) -> None:
    window, wanted, late, expected = CHOICES[case]
    chosen = choose_stream_merge(window, wanted, late=late)
    assert chosen.name == expected
    assert chosen.name in MERGERS
    assert chosen.reason


@pytest.mark.parametrize("name", AVAILABLE)
def test_what_is_asked_for_is_taken(name: str) -> None:
    for window, wanted, late, _ in CHOICES.values():
        chosen = choose_stream_merge(window, wanted, late=late, asked=name)
        assert chosen.name == name and name in chosen.reason
