"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from paneflow.slicing import ordering

# The first call of a kernel compiles it, and a busy machine is slow: no clock decides.
settings.register_profile("paneflow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paneflow")

ROOMS = {"aggregates", "merging", "multicore", "properties", "windows"}
"""Where small tables stand for large ones."""


@pytest.fixture(autouse=True, scope="module")
def kernels_for_few_events(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small tables take the way of large ones, through kernels, where that is what is tested.

    `test_few_events.py` compares the two ways.
    """
    with pytest.MonkeyPatch.context() as patch:
        if ROOMS & set(Path(request.path).parts):
            patch.setattr(ordering, "FEW", -1)
        yield
