"""Shows the comparison over tables: its figures, and whether targets were met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.cases import OURS, Case, Figure, by_case
from bench.measuring import Measured
from bench.report import Sheet, console, verdict

HEADINGS = (
    "overlap",
    "contestant",
    "seconds",
    "× paneflow",
    "M events/s",
    "rows out",
    "peak",
    "rows",
    "peak − rows",
)
LEGEND = (
    "× paneflow: how many times as long as paneflow. peak: the highest memory of the call, above "
    "what was resident before; rows: that of the result; both as multiples of the input."
)


def show(figures: Sequence[Figure]) -> None:
    """Print a table for every size, and whether the targets were met."""
    for sheet in sheets(figures):
        sheet.show()
    console.print(LEGEND)
    for holds, text in targets(figures):
        verdict(holds, text)


def sheets(figures: Sequence[Figure]) -> list[Sheet]:
    """A table for every size, with a section for every case."""
    made = []
    for size in dict.fromkeys(f.case.size for f in figures):
        mine = [f for f in figures if f.case.size == size]
        sections = [
            [_cells(case, name, measured, members[OURS]) for name, measured in members.items()]
            for case, members in by_case(mine)
        ]
        made.append(Sheet(size, HEADINGS, sections))
    return made


def targets(figures: Sequence[Figure]) -> Iterator[tuple[bool, str]]:
    """The targets of each case, and whether they were met."""
    for case, members in by_case(figures):
        ours = members[OURS]
        if case.keys == 100 and case.overlap in (60, 600):
            faster = members["polars"].seconds / ours.seconds
            yield faster >= 10, f"{case}: {faster:.1f} times as fast as polars (10)"
        if case.overlap == 1:
            peers = {name: m.seconds for name, m in members.items() if name != OURS}
            best = min(peers, key=peers.__getitem__)
            faster = peers[best] / ours.seconds
            yield faster >= 1, f"{case}: {faster:.2f} times as fast as the best peer, {best} (1)"
        if ours.working_ratio is not None:
            text = f"{case}: {ours.working_ratio:.1f} times the input in memory, without rows (3)"
            yield ours.working_ratio < 3, text


def _cells(case: Case, name: str, measured: Measured, ours: Measured) -> list[str]:
    overlap = f"{case.overlap:,}" + (f" in {case.batches} parts" if case.batches > 1 else "")
    ratio = f"{measured.seconds / ours.seconds:.1f}"
    if measured.over:
        return [overlap, name, f"over limit (~{measured.seconds:,.0f})", f"~{ratio}", *[""] * 5]
    sizes = (measured.peak_ratio, measured.result_ratio, measured.working_ratio)
    return [
        overlap,
        name,
        f"{measured.seconds:.3f}",
        ratio,
        f"{case.events / measured.seconds / 1e6:.1f}",
        f"{measured.rows:,}",
        *("" if size is None else f"{size:.1f}" for size in sizes),
    ]
