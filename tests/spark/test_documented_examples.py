"""Examples in docstrings that need Spark: doctest skips them, so that it starts no session."""

from __future__ import annotations

import doctest
import tempfile
from pathlib import Path
from typing import Any

import pytest

import paneflow as pf
import paneflow.spark

DOCUMENTED = {
    "session": paneflow.spark.session,
    "split": paneflow.spark.split,
    "write_stream": pf.Query.write_stream,
}


@pytest.mark.parametrize("function", DOCUMENTED.values(), ids=DOCUMENTED)
def test_an_example_gives_the_output_it_shows(
    function: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (example,) = doctest.DocTestFinder(recurse=False).find(function, globs={})
    for line in example.examples:
        line.options.pop(doctest.SKIP, None)
    said: list[str] = []
    results = doctest.DocTestRunner().run(example, out=said.append)
    assert 3 <= len(example.examples) == results.attempted
    assert results.failed == 0, "".join(said)
