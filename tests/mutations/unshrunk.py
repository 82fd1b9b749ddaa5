"""A plugin for pytest: failing examples are not shrunk, which takes longer than finding them."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Change the profile that the tests' own conftest has chosen."""
    phases = [Phase.explicit, Phase.generate]
    settings.register_profile("unshrunk", settings(), phases=phases, database=None)
    settings.load_profile("unshrunk")
