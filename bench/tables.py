"""paneflow, polars and DuckDB answer the same window query over the same finite table.

python -m bench.tables [--quick] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from bench import report
from bench.agreement import disagreement
from bench.cases import OURS, Case, Figure
from bench.contestants import CONTESTANTS
from bench.data import events, key_ranges
from bench.measuring import Measured, Task, measure
from bench.pictures import draw_tables
from bench.report import console
from bench.showing import sheets, show

Sizes = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Numbers of events, numbers of keys, overlaps."""

FULL: Sizes = ((2_000_000, 20_000_000), (100, 100_000), (1, 60, 600, 3600))
QUICK: Sizes = ((2_000_000,), (100,), (1, 60, 600))

ROUNDS, SHORT = 2, 5.0
"""How often contestants are measured that take fewer seconds than that."""


def check_agreement() -> None:
    """Stop before anything is measured if contestants answer differently."""
    for count in (20_000, 2_000):
        table = events(count, 100)
        for overlap in (1, 60, 600):
            for contestant in CONTESTANTS.values():
                if contestant.overlaps(overlap):
                    wrong = disagreement(contestant, table, overlap)
                    if wrong is not None:
                        raise SystemExit(f"{contestant.name}, {count} events, {overlap}: {wrong}")


def run(sizes: Sizes, limit: float) -> Iterator[Figure]:
    """Measure every case of a grid; peers that would take longer than `limit` are given up."""
    counts, key_counts, overlaps = sizes
    for count in counts:
        for keys in key_counts:
            table = events(count, keys)
            for case in (Case(count, keys, overlap) for overlap in overlaps):
                with tempfile.TemporaryDirectory() as folder:
                    files = write_input(table, case, Path(folder))
                    yield from _compete(case, files, limit)


def _compete(case: Case, files: tuple[str, ...], limit: float) -> Iterator[Figure]:
    found: dict[str, Measured] = {}
    # Short ones get another turn: noise that lasts for seconds would hit only one of them.
    for _ in range(ROUNDS):
        for name, contestant in CONTESTANTS.items():
            if not contestant.overlaps(case.overlap):
                continue
            if name not in found:
                found[name] = _measured(case, name, files, limit)
            elif found[name].seconds < SHORT and not found[name].over:
                found[name] = found[name].better(_measured(case, name, files, limit))
    for name, measured in found.items():
        yield Figure(case, name, measured)


def _measured(case: Case, name: str, files: tuple[str, ...], limit: float) -> Measured:
    allowed = None if name == OURS else limit
    measured = measure(Task(name, case.overlap, files, allowed))
    over = ", over limit, estimated" if measured.over else ""
    console.log(f"{case}: {name} {measured.seconds:.3f} s{over}")
    return measured


def write_input(table: pa.Table, case: Case, folder: Path) -> tuple[str, ...]:
    """The files with the events of a case, one for each key range."""
    files = []
    for k, part in enumerate(key_ranges(table, case.keys, case.batches)):
        files.append(str(folder / f"{k}.arrow"))
        with pa.ipc.new_file(files[-1], part.schema) as sink:
            sink.write_table(part)
    return tuple(files)


def main(arguments: Sequence[str] | None = None) -> None:
    """Check that all agree, measure, show, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 million events, 100 keys")
    parser.add_argument("--limit", type=float, default=60, help="seconds a peer may take")
    options = parser.parse_args(arguments)
    check_agreement()
    console.log("all contestants agree on small tables")
    name, sizes = ("tables-quick", QUICK) if options.quick else ("tables", FULL)
    figures: list[Figure] = []
    for figure in run(sizes, options.limit):
        figures.append(figure)
        # A long run that is interrupted leaves what it has measured.
        report.write(name, [asdict(f) for f in figures])
    show(figures)
    if not options.quick:
        report.publish("tables", sheets(figures))
        draw_tables(figures, report.PICTURES / "tables.svg")


if __name__ == "__main__":
    main()
