"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# The first call of a kernel compiles it, which no deadline should count.
settings.register_profile("paneflow", deadline=None)
settings.load_profile("paneflow")
