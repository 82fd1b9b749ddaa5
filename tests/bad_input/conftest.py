"""Bad input is refused alike by what defines the answers and by what gives them."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
