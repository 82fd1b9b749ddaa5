"""A window of your own: open while a load is above a level.

The built-in windows follow times, positions, gaps and marks. When a peak of a machine's load begins
and ends depends on the events themselves, so this window is a class that says, event by event,
whether a window opens or closes. Run it with `python examples/threshold_window.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A
from paneflow.windows import CLOSE_BEFORE, KEEP, OPEN, Custom, WindowClass


@dataclass(frozen=True)
class Threshold(Custom):
    """Opens at the first event whose column exceeds `level`, and closes when one no longer does.

    Its class is FCF: windows that have begun or ended are known from past events alone.
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCF

    column: str
    level: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def initial(self) -> tuple[Any, ...]:
        return (float(self.level), False)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, value: float) -> tuple[tuple[Any, ...], int]:
        level, above = state
        if value > level:
            return (level, True), KEEP if above else OPEN
        return (level, False), CLOSE_BEFORE if above else KEEP


#  load  20 |           ●
#        15 |     ●
#        12 |        ●              ●
#  level 10 |-----------------------------
#         8 |  ●                 ●     ●
#         3 |              ●  ●
#  minute      1  2  3  4  5  6  7  8  9
LOADS = pa.table(
    {
        "minute": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "load": [8.0, 15.0, 12.0, 20.0, 3.0, 3.0, 8.0, 12.0, 8.0],
    }
)


def main() -> None:
    """Print the peaks of `LOADS`."""
    peaks = pf.Query(
        windows={"peak": Threshold("load", level=10)},
        aggregates={"events": A.count(), "highest": A.max("load")},
        time="minute",
    )
    for row in peaks.over(LOADS).to_pylist():
        print(
            f"peak {row['seq']}: minutes {row['start']} to {row['end']}, "
            f"{row['events']} events, highest load {row['highest']:g}"
        )


if __name__ == "__main__":
    main()
