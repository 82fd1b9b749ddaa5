"""Pages whose code needs Spark print what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages import PAGES, needs_spark, run


@pytest.mark.long
@pytest.mark.parametrize("page", [p for p in PAGES if needs_spark(p)], ids=lambda page: page.name)
def test_the_code_of_a_page_prints_what_the_page_shows(
    spark: Any, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line, shown, printed in run(page):
        assert printed == shown, f"{page.name}, line {line}"
