"""What every bench leaves behind: a JSON file of its figures and of the machine they are from."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PICTURES = ROOT / "docs" / "img"
LIBRARIES = ("paneflow", "polars", "duckdb", "numba", "numpy", "pyarrow")

console = Console(width=None if sys.stdout.isatty() else 120)


def machine() -> dict[str, Any]:
    """What figures depend on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
    }


def write(name: str, figures: Any) -> Path:
    """Keep the figures of a bench; the newest replace those before."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=1) + "\n")
    return path


def verdict(holds: bool, text: str) -> str:
    """A target and whether it was met, in colour."""
    return f"[green]met[/]    {text}" if holds else f"[red]missed[/] {text}"


def _version(name: str) -> str:
    if name == "paneflow":
        import paneflow

        return paneflow.__version__
    return version(name)
