"""One Spark session for all tests that need one: starting it costs more than most of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paneflow.spark

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session with two cores; stopped when the tests are over."""
    before = os.environ.get("PYTHONPATH")
    # Workers unpickle functions of the tests by name, so they must find the tests, too.
    paths = [str(ROOT / "src"), str(ROOT), *([before] if before else [])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PySpark does while it starts is its own affair
        made = paneflow.spark.session(
            "paneflow-tests",
            "local[2]",
            **{
                "spark.sql.shuffle.partitions": 2,
                "spark.default.parallelism": 2,
                "spark.driver.memory": "1g",
            },
        )
    yield made
    made.stop()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
