"""paneflow, polars and DuckDB answer the same window query over the same finite table.

python -m bench.tables [--quick] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.table import Table

from bench.agreement import disagreement
from bench.contestants import ALL, CONTESTANTS
from bench.data import events, key_ranges, rows_of
from bench.measuring import Measured, Task, measure
from bench.pictures import draw_tables
from bench.report import PICTURES, RESULTS, console, verdict, write

OURS = "paneflow"
FULL = ((2_000_000, 20_000_000), (100, 100_000), (1, 60, 600, 3600))
QUICK = ((2_000_000,), (100,), (1, 60, 600))
ROWS_AT_ONCE = 25_000_000
"""Of more rows than this, the result is asked for one key range at a time, by everybody."""


@dataclass(frozen=True)
class Case:
    """So many events of so many keys, in windows that overlap so many times."""

    events: int
    keys: int
    overlap: int

    @property
    def batches(self) -> int:
        """Into how many key ranges the table is dealt."""
        return math.ceil(rows_of(self.events, self.keys, self.overlap) / ROWS_AT_ONCE)


@dataclass(frozen=True)
class Figure:
    """One contestant in one case."""

    case: Case
    contestant: str
    measured: Measured


def check_agreement() -> None:
    """Stop before anything is measured if contestants answer differently."""
    for count, keys in ((20_000, 100), (2_000, 100)):
        table = events(count, keys)
        for overlap in (1, 60, 600):
            for contestant in CONTESTANTS.values():
                if contestant.overlaps(overlap):
                    wrong = disagreement(contestant, table, overlap)
                    if wrong is not None:
                        raise SystemExit(f"{contestant.name}, {count} events, {overlap}: {wrong}")


def run(sizes: Sequence[Sequence[int]], limit: float) -> Iterator[Figure]:
    """Measure every case of a grid; peers that would take longer than `limit` are given up."""
    counts, key_counts, overlaps = sizes
    for count in counts:
        for keys in key_counts:
            table = events(count, keys)
            for overlap in overlaps:
                case = Case(count, keys, overlap)
                with tempfile.TemporaryDirectory() as folder:
                    files = _write(table, case, Path(folder))
                    yield from _compete(case, files, limit)


def _compete(case: Case, files: tuple[str, ...], limit: float) -> Iterator[Figure]:
    for contestant in CONTESTANTS.values():
        if contestant.overlaps(case.overlap):
            mine = None if contestant.name == OURS else limit
            figure = Figure(
                case,
                contestant.name,
                measure(Task(contestant.name, case.overlap, files, mine)),
            )
            console.log(_line(figure))
            yield figure


def _write(table: pa.Table, case: Case, folder: Path) -> tuple[str, ...]:
    files = []
    for k, part in enumerate(key_ranges(table, case.keys, case.batches)):
        files.append(str(folder / f"{k}.arrow"))
        with pa.ipc.new_file(files[-1], part.schema) as sink:
            sink.write_table(part)
    return tuple(files)


def _line(figure: Figure) -> str:
    case, measured = figure.case, figure.measured
    over = " over limit, estimated" if measured.over else ""
    return (
        f"{case.events / 1e6:g} M events, {case.keys:,} keys, overlap {case.overlap:,}: "
        f"{figure.contestant} {measured.seconds:.3f} s{over}"
    )


def show(figures: Sequence[Figure]) -> None:
    """A table for every size, and whether the targets were met."""
    for (count, keys), group in _groups(figures):
        shown = Table(title=f"{count / 1e6:g} million events, {keys:,} keys", title_justify="left")
        shown.add_column("overlap", justify="right")
        shown.add_column("contestant")
        for heading in ("seconds", "× paneflow", "M events/s", "rows out", "peak", "without rows"):
            shown.add_column(heading, justify="right")
        for case, members in _cases(group):
            ours = members[OURS]
            for name, measured in members.items():
                shown.add_row(*_cells(case, name, measured, ours))
            shown.add_section()
        console.print(shown)
    console.print(
        "peak: memory at its height above what was resident, as a multiple of the input; "
        "without rows: the same without the bytes of the result.\n"
        f"duckdb above overlap 1: {CONTESTANTS['duckdb'].rows}."
    )
    for line in verdicts(figures):
        console.print(line)


def _cells(case: Case, name: str, measured: Measured, ours: Measured) -> list[str]:
    batches = f" (in {case.batches} key ranges)" if case.batches > 1 and name == OURS else ""
    ratio = f"{measured.seconds / ours.seconds:.1f}"
    if measured.over:
        estimate = f"over limit, ~{measured.seconds:,.0f}"
        return [f"{case.overlap:,}", name, estimate, f"~{ratio}", "", "", "", ""]
    return [
        f"{case.overlap:,}",
        name + batches,
        f"{measured.seconds:.3f}",
        ratio,
        f"{case.events / measured.seconds / 1e6:.1f}",
        f"{measured.rows:,}",
        _times(measured.peak_ratio),
        _times(measured.working_ratio),
    ]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def verdicts(figures: Sequence[Figure]) -> Iterator[str]:
    """The targets, each case by itself."""
    for case, members in _cases(figures):
        ours = members[OURS]
        where = f"{case.events / 1e6:g} M events, {case.keys:,} keys, overlap {case.overlap:,}"
        if case.keys == 100 and case.overlap in (60, 600):
            faster = members["polars"].seconds / ours.seconds
            yield verdict(faster >= 10, f"{where}: {faster:.1f} times as fast as polars (10)")
        if case.overlap == 1:
            peers = {name: m.seconds for name, m in members.items() if name != OURS}
            best = min(peers, key=peers.__getitem__)
            ratio = peers[best] / ours.seconds
            text = f"{where}: {ratio:.2f} times as fast as the fastest peer, {best} (1)"
            yield verdict(ratio >= 1, text)
        if ours.working_ratio is not None:
            text = f"{where}: {ours.working_ratio:.1f} times the input in memory, without rows (3)"
            yield verdict(ours.working_ratio < 3, text)


def _groups(figures: Sequence[Figure]) -> Iterator[tuple[tuple[int, int], list[Figure]]]:
    sizes = dict.fromkeys((f.case.events, f.case.keys) for f in figures)
    for size in sizes:
        yield size, [f for f in figures if (f.case.events, f.case.keys) == size]


def _cases(figures: Sequence[Figure]) -> Iterator[tuple[Case, dict[str, Measured]]]:
    for case in dict.fromkeys(f.case for f in figures):
        yield case, {f.contestant: f.measured for f in figures if f.case == case}


def main(arguments: Sequence[str] | None = None) -> None:
    """Check that all agree, measure, show, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 million events, 100 keys")
    parser.add_argument("--limit", type=float, default=60, help="seconds a peer may take")
    options = parser.parse_args(arguments)
    check_agreement()
    console.log("all contestants agree on small tables")
    figures = list(run(QUICK if options.quick else FULL, options.limit))
    show(figures)
    kept: list[dict[str, Any]] = [asdict(f) for f in figures]
    write("tables-quick" if options.quick else "tables", kept)
    picture = (RESULTS if options.quick else PICTURES) / "tables.svg"
    picture.parent.mkdir(parents=True, exist_ok=True)
    complete = [n for n, c in CONTESTANTS.items() if c.rows == ALL]
    draw_tables(kept, complete, picture)
    console.print(f"the picture is in {picture}")


if __name__ == "__main__":
    main()
