"""What a user may ask of a stream beside the query itself, on Spark or in one process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from paneflow.errors import QueryError
from paneflow.slicing.durations import with_unit
from paneflow.windows import DurationLike, duration
from paneflow.windows.many_rows import MAX_ROWS

FINAL = "final"
LATE = "late"


@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream; durations are in microseconds."""

    max_ahead: int | None = None
    updates: bool = False
    late: bool = False
    idle: int | None = None
    max_rows: int | None = MAX_ROWS

    @classmethod
    def of(
        cls,
        max_ahead: DurationLike | None = None,
        emit: str = "final",
        late: bool = False,
        idle: DurationLike | None = None,
        max_rows: int | None = MAX_ROWS,
    ) -> StreamOptions:
        """The options as a user states them."""
        if not isinstance(emit, str) or emit not in ("final", "updates"):
            raise QueryError(
                f"emit={emit!r} is not known: choose 'final' to get each row once, when it is "
                f"final, or 'updates' to get it whenever it changes as well"
            )
        if not isinstance(late, bool):
            raise QueryError(
                f"late={late!r} is neither True nor False: choose True to get the events that "
                f"came too late, or False to have them counted only"
            )
        ahead = None if max_ahead is None else _micros(max_ahead, "max_ahead", least=0)
        silent = None if idle is None else _micros(idle, "idle", least=1)
        return cls(ahead, emit == "updates", late, silent, max_rows)


def check_added(taken: list[str], added: list[str]) -> None:
    """Refuse a result with a column that has the name of one that the stream adds."""
    for name in added:
        if name in taken:
            raise QueryError(
                f"the result has a column {name!r} of its own, which this stream would add: "
                f"give the aggregate or the key another name"
            )


def marked(rows: pa.Table, final: bool) -> pa.Table:
    """Rows with a column that says whether they are the last of their windows."""
    return rows.append_column(FINAL, pa.repeat(pa.scalar(final), rows.num_rows))


def _micros(given: DurationLike, what: str, least: int) -> int:
    """A duration in microseconds: it is measured by the clock, so its unit must be stated."""
    length = duration(given, what, least=least)
    if length.value and not length.textual:
        raise QueryError(
            f"{what} is the whole number {given}, but it is measured by the clock, and {given} "
            f"of what is not said: {with_unit(what, length.value)}"
        )
    return length.value
