"""A benchmark in several parts: runs all of them, or those that are named."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from bench import report


def run_parts(
    bench: str,
    description: str | None,
    parts: Mapping[str, ModuleType],
    arguments: Sequence[str] | None,
) -> None:
    """Run parts, show their figures and verdicts, and publish them unless the run is a quick one.

    A part has `run(quick)`, which returns figures and sheets, `targets(figures)` and
    `draw(figures)`.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{bench}", description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, for daily use")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all if none is named")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - parts.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    figures: dict[str, Any] = {}
    for name in given.parts or parts:
        figures[name], sheets = parts[name].run(given.quick)
        for sheet in sheets:
            sheet.show()
        for holds, text in parts[name].targets(figures[name]):
            report.verdict(holds, text)
        if not given.quick:
            parts[name].draw(figures[name])
            report.publish(f"{bench}-{name.replace('_', '-')}", sheets)
    report.write(f"{bench}-quick" if given.quick or given.parts else bench, figures)
