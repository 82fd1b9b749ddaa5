"""The output of every benchmark: tables on the screen and in the docs, figures as JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import paneflow

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "img"
LIBRARIES = ("polars", "duckdb", "pyspark", "numba", "numpy", "pyarrow")

console = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Sheet:
    """A table of figures, in sections of rows that belong together."""

    title: str
    headings: Sequence[str]
    sections: Sequence[Sequence[Sequence[str]]]

    def show(self) -> None:
        """Print it."""
        shown = Table(*self.headings, title=self.title, title_justify="left")
        for column in shown.columns:
            column.justify = "left" if column.header == "contestant" else "right"
        for section in self.sections:
            for cells in section:
                shown.add_row(*cells)
            shown.add_section()
        console.print(shown)

    def markdown(self) -> str:
        """The same for the docs."""
        marks = [":---" if name == "contestant" else "---:" for name in self.headings]
        rows = [self.headings, marks, *(cells for section in self.sections for cells in section)]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)])


def machine() -> dict[str, Any]:
    """The machine and the versions that figures depend on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "versions": {"paneflow": paneflow.__version__} | {n: version(n) for n in LIBRARIES},
    }


def write(name: str, figures: Any) -> Path:
    """Write the figures of a benchmark to a file, replacing earlier ones."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=1) + "\n")
    return path


def publish(name: str, sheets: Sequence[Sheet]) -> None:
    """Replace tables on the benchmarks page."""
    about = machine()
    versions = ", ".join(f"{library} {number}" for library, number in about["versions"].items())
    line = f"Measured on {about['date']}: {about['cores']} cores ({about['processor']}), Python "
    text = "\n\n".join([f"{line}{about['python']}, {versions}.", *(s.markdown() for s in sheets)])
    place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
    page, found = place.subn(lambda _: f"\n{text}\n\n", PAGE.read_text())
    if found != 1:
        raise SystemExit(f"{PAGE} has no place for {name}: add <!-- {name} --> and its end")
    PAGE.write_text(page)


def verdict(holds: bool, text: str) -> None:
    """Say whether a target was met."""
    console.print(f"[green]met[/]    {text}" if holds else f"[red]missed[/] {text}")
