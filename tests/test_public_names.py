"""What a user finds: `dir()` lists what is public, and every public callable documents itself."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import paneflow
from paneflow import aggregates, windows

MODULES = {
    "paneflow": paneflow,
    "windows": windows,
    "aggregates": aggregates,
    "spark": importlib.import_module("paneflow.spark"),
}


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_dir_lists_what_is_public_and_nothing_else(module: Any) -> None:
    shown = dir(module)
    assert len(shown) == len(set(shown))
    assert {name for name in shown if not name.startswith("__")} == set(module.__all__)
    assert all(hasattr(module, name) for name in shown)
    assert {"__all__", "__doc__", "__file__", "__name__", "__spec__"} <= set(shown)
