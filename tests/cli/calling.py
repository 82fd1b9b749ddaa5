"""Calls the command as a shell would, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from paneflow.cli import main

WIDTH = 100


class Answer(NamedTuple):
    """What a command has left behind."""

    code: int | str | None
    out: str
    err: str


Call = Callable[..., Answer]


def calling(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Gives a function that calls `paneflow` with arguments."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["paneflow", *map(str, arguments)])
        code: int | str | None
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        return Answer(code or 0, out, err)

    return call
