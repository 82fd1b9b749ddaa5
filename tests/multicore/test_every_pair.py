"""Every aggregate by every strategy: compared with the oracle, or refused with the reason."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

import paneflow as pf
from paneflow.engines.multicore.choosing import BY_NAME
from tests.compared import BY_STRATEGY
from tests.multicore.refusals import (
    KEPT_WHOLE,
    SKETCHES,
    refusal,
    served_aggregates,
    served_windows,
)
from tests.multicore.stream_cases import as_stream, check
from tests.multicore.support import HIVES, TOPOLOGIES, Fed
from tests.properties.cases import AGGREGATES, SHARED, WINDOWS, full_case

SEEDS = range(5)
ENOUGH = 5
"""Cases that each pair has at least."""
CUT = ("tumbling", "sliding", "session")
FOLDED = tuple(n for n in AGGREGATES if n not in (*KEPT_WHOLE, *SKETCHES, "define_ordered"))
FIXED_SIZE = (*FOLDED, *SKETCHES, "define_ordered")


class Question(NamedTuple):
    """Windows and aggregates of one query: others beside them may change how all are answered."""

    windows: tuple[str, ...]
    aggregates: tuple[str, ...] = tuple(AGGREGATES)
    text: bool = True
    """Whether some aggregates may read texts."""


QUESTIONS = (
    Question(CUT, FOLDED, text=False),
    Question(CUT, FIXED_SIZE, text=False),
    Question(("tumbling", "sliding", "count")),
    Question(("count",)),
    Question(("punctuation",)),
    Question(("session", "slide_by_tuple", "slide_by_time", "delta")),
    Question(("threshold",)),
)


def questions(strategy: str) -> Iterator[Question]:
    """What can be asked of a strategy: of each question the part that it serves."""
    for question in QUESTIONS:
        windows = tuple(w for w in question.windows if w in served_windows(strategy))
        served = served_aggregates(strategy, windows)
        names = tuple(name for name in question.aggregates if name in served)
        if windows:
            yield Question(windows, names, question.text and strategy not in (*TOPOLOGIES, *HIVES))


def compare(strategy: str, seeds: Iterable[int], enough: int) -> None:
    """Every aggregate that a strategy serves is compared with the oracle often enough."""
    before = BY_STRATEGY.copy()
    asked = set(questions(strategy))
    for question in sorted(asked):
        for seed in seeds:
            r = random.Random(f"{strategy} {question} {seed}")
            check(as_stream(full_case(seed, *question), r), r, strategy, r.randint(1, 5))
    compared = BY_STRATEGY - before
    assert len(compared) == len({name for question in asked for name in question.aggregates})
    assert min(compared.values()) >= enough


@pytest.mark.parametrize("strategy", ["auto", *BY_NAME])
def test_every_aggregate_that_a_strategy_serves(strategy: str) -> None:
    compare(strategy, SHARED[:1], 1)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["auto", *BY_NAME])
def test_every_aggregate_that_a_strategy_serves_over_more_columns(strategy: str) -> None:
    compare(strategy, SEEDS, ENOUGH)


@pytest.mark.parametrize("strategy", BY_NAME)
def test_a_strategy_refuses_the_others_with_the_reason(strategy: str) -> None:
    for window in WINDOWS:
        for aggregate in AGGREGATES:
            case = full_case(0, (window,), [aggregate], text=aggregate == "concat")
            fed = Fed(case.query, case.table)
            why = BY_NAME[strategy].refuses(fed.query, fed.kinds)
            expected = refusal(strategy, window, aggregate)
            assert (why is None) == (expected is None), (window, aggregate, why)
            assert (expected or "") in (why or ""), (window, aggregate)


@pytest.mark.parametrize("strategy", BY_NAME)
def test_a_refusal_reaches_the_user(strategy: str) -> None:
    """For one aggregate of each reason, in one window of each."""
    reasons = {
        (expected, (window, aggregate))
        for window in WINDOWS
        for aggregate in AGGREGATES
        if (expected := refusal(strategy, window, aggregate)) is not None
    }
    for expected, (window, aggregate) in dict(sorted(reasons)).items():
        case = full_case(0, (window,), [aggregate], text=aggregate == "concat")
        with (
            pytest.raises(pf.UnsupportedError, match=expected),
            case.query.open(workers=2, strategy=strategy) as stream,
        ):
            stream.push(case.table)
