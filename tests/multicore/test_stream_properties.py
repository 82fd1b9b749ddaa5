"""Streams give the oracle's rows in the oracle's order, whoever answers and however they come."""

from __future__ import annotations

import itertools
import os
import random

import pytest

import paneflow as pf
from paneflow.engines.multicore.choosing import BY_NAME
from tests.multicore.stream_cases import STREAMED, check, draw_stream
from tests.multicore.support import random_helping, random_pauses
from tests.properties.cases import AGGREGATES

MANY = int(os.environ.get("PANEFLOW_RANDOM_STREAMS", "10000"))
STRATEGIES = ["auto", *BY_NAME]
BY_NUMBER = ("tumbling", "sliding", "count")
BY_EVENTS = ("session", "slide_by_tuple", "slide_by_time", "delta", "punctuation")
FIXED_SIZE = (
    *("count", "sum", "exact_sum", "min", "max", "mean", "var", "std", "first", "last"),
    *("arg_min", "arg_max", "product", "define_commutative", "define_ordered"),
)
"""What strategies that share windows by number can answer; the others can answer anything."""


def draw_and_check(seed: object, strategy: str) -> bool:
    """Whether the strategy serves a random stream; if it does, it gives the right rows."""
    r = random.Random(f"{strategy} {seed}")
    windows, aggregates = STREAMED, tuple(AGGREGATES)
    if strategy not in ("auto", "active", "agnostic") or r.random() < 0.3:
        windows, aggregates = BY_NUMBER, FIXED_SIZE
    case = draw_stream(r, windows, aggregates)
    workers = r.randint(1, 9)
    pauses = random_pauses(r.randrange(10**6)) if r.random() < 0.5 else None
    try:
        with random_helping(r):
            check(case, r, strategy, workers, pauses)
    except pf.UnsupportedError:
        return False
    except Exception as error:
        raise AssertionError(f"seed {seed}, {strategy} by {workers}: {case!r}") from error
    return True


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_stream_by_any_number_of_workers(strategy: str) -> None:
    served = sum(draw_and_check(seed, strategy) for seed in range(25))
    assert served >= 5


@pytest.mark.parametrize("strategy", ["auto", "active", "agnostic"])
@pytest.mark.parametrize("window", STREAMED)
def test_every_kind_of_window(window: str, strategy: str) -> None:
    for seed in range(4):
        r = random.Random(f"{window} {strategy} {seed}")
        case = draw_stream(r, (window,))
        try:
            check(case, r, strategy, r.randint(1, 4))
        except pf.UnsupportedError:
            assert strategy == "active" or (strategy, window) == ("agnostic", "threshold")


@pytest.mark.parametrize("strategy", ["auto", "active", "agnostic"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_aggregate(aggregate: str, strategy: str) -> None:
    r = random.Random(f"{aggregate} {strategy}")
    windows = {"auto": STREAMED, "active": BY_NUMBER, "agnostic": BY_EVENTS}[strategy]
    check(draw_stream(r, windows, (aggregate,)), r, strategy, r.randint(1, 3))


@pytest.mark.exhaustive
def test_ten_thousand_random_streams() -> None:
    served = dict.fromkeys(STRATEGIES, 0)
    for seed in itertools.count():
        strategy = STRATEGIES[seed % len(STRATEGIES)]
        served[strategy] += draw_and_check(seed, strategy)
        if sum(served.values()) >= MANY:
            break
    print(f"streams compared with the oracle: {served}")
