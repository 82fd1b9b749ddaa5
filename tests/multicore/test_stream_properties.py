"""Streams give the oracle's rows in the oracle's order, whoever answers and however they come."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from paneflow.engines.multicore.choosing import BY_NAME
from tests.multicore.refusals import BY_NUMBER, served_aggregates, served_windows
from tests.multicore.stream_cases import STREAMED, check, check_or_refused, draw_stream
from tests.multicore.support import ONE_WORKER, random_helping, random_pauses
from tests.properties.cases import AGGREGATES
from tests.seeds import some_first

MANY = int(os.environ.get("PANEFLOW_RANDOM_STREAMS", "10000"))
STRATEGIES = ["auto", *BY_NAME]
FREELY = ("auto", *ONE_WORKER, "active", "agnostic")
"""Strategies that give all aggregates."""


def draw_and_check(seed: object, strategy: str) -> bool:
    """Whether the strategy serves a random stream; if it does, it gives the right rows."""
    r = random.Random(f"{strategy} {seed}")
    windows, aggregates = STREAMED, tuple(AGGREGATES)
    if strategy not in FREELY or r.random() < 0.3:
        windows = BY_NUMBER
        aggregates = served_aggregates("pane_line", BY_NUMBER)
    case = draw_stream(r, windows, aggregates)
    workers = r.randint(1, 9)
    pauses = random_pauses(r.randrange(10**6)) if r.random() < 0.5 else None
    try:
        with random_helping(r):
            return check_or_refused(case, r, strategy, workers, pauses)
    except Exception as error:
        raise AssertionError(f"seed {seed}, {strategy} by {workers}: {case!r}") from error


@pytest.mark.parametrize("seeds", some_first(8, 25))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_stream_by_any_number_of_workers(strategy: str, seeds: range) -> None:
    served = sum(draw_and_check(seed, strategy) for seed in seeds)
    assert served >= len(seeds) // 5


@pytest.mark.parametrize(
    ("strategy", "window"), [(s, window) for s in FREELY for window in served_windows(s)]
)
def test_every_kind_of_window(strategy: str, window: str) -> None:
    for seed in range(8):
        r = random.Random(f"{window} {strategy} {seed}")
        check(draw_stream(r, (window,)), r, strategy, r.randint(1, 4))


@pytest.mark.exhaustive
def test_ten_thousand_random_streams() -> None:
    served = dict.fromkeys(STRATEGIES, 0)
    for seed in itertools.count():
        strategy = STRATEGIES[seed % len(STRATEGIES)]
        served[strategy] += draw_and_check(seed, strategy)
        if sum(served.values()) >= MANY:
            break
    print(f"streams compared with the oracle: {served}")
