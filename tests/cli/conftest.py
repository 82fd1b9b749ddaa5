"""The command, for all tests of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.cli.calling import Call, calling


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Calls `paneflow` with arguments; what it logs to is forgotten afterwards."""
    log = logging.getLogger("paneflow")
    handlers, level = log.handlers.copy(), log.level
    yield calling(monkeypatch, capsys)
    log.handlers[:] = handlers
    log.setLevel(level)
