"""Seeds of random questions: a few for `make test`, the others for `make test-slow`."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def some_first(few: int, all_: int) -> list[ParameterSet]:
    """Two ranges of seeds, as parameters of a test: the first for every run, the second is long."""
    return [
        pytest.param(range(few), id=f"{few} seeds"),
        pytest.param(range(few, all_), id=f"{all_ - few} more", marks=pytest.mark.long),
    ]
