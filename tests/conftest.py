"""What holds for all tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest
from hypothesis import HealthCheck, settings

import paneflow.spark
from paneflow.slicing import ordering
from tests.properties import cases
from tests.slow_starts import run_again_after_slow_starts

ROOT = Path(__file__).resolve().parents[1]

# The first call of a kernel compiles it, and a busy machine is slow: no clock decides.
settings.register_profile("paneflow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paneflow")

ROOMS = {"aggregates", "merging", "multicore", "properties", "windows"}
"""Where small tables stand for large ones."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark come first, so that one process of several runs them, with one JVM.

    The first process begins with the first half of the tests. Another one that has nothing left to
    do takes tests over from the end of what waits there, so it comes to those of Spark last.
    """
    items.sort(key=lambda item: not needs_spark(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tests of Spark may need more than one attempt."""
    if not needs_spark(item):
        return None
    run_again_after_slow_starts(item, nextitem)
    return True


def needs_spark(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test uses the session below."""
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session with two cores, one for all tests: starting it takes longer than most."""
    with pytest.MonkeyPatch.context() as patch:
        # Workers unpickle functions of the tests by name, so they must find the tests, too.
        patch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=os.pathsep)
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what PySpark does while it starts is its own affair
            made = paneflow.spark.session(
                "paneflow-tests",
                "local[2]",
                **{
                    "spark.sql.shuffle.partitions": 2,
                    "spark.default.parallelism": 2,
                    "spark.driver.memory": "1g",
                    # Small queries end before optimised code pays: this halves the JVM's work.
                    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
            )
        yield made
        made.stop()


@pytest.fixture(autouse=True, scope="module")
def kernels_for_few_events(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small tables take the way of large ones, through kernels, where that is what is tested.

    `test_few_events.py` compares the two ways.
    """
    with pytest.MonkeyPatch.context() as patch:
        if ROOMS & set(Path(request.path).parts):
            patch.setattr(ordering, "FEW", -1)
        yield


@pytest.fixture(autouse=True)
def few_types_where_time_is_short(request: pytest.FixtureRequest) -> Iterator[None]:
    """Random questions of `make test` share their kernels; the slow targets ask for any columns."""
    slow = any(request.node.get_closest_marker(mark) for mark in ("long", "exhaustive"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "FEW_TYPES", not slow)
        yield
