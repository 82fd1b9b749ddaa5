"""What a user may ask of a stream beside the query itself."""

from __future__ import annotations

from dataclasses import dataclass

from paneflow.errors import QueryError
from paneflow.slicing.durations import with_unit
from paneflow.windows import DurationLike, duration
from paneflow.windows.many_rows import MAX_ROWS

FINAL = "final"
LATE = "late"


@dataclass(frozen=True)
class Wanted:
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
    ) -> Wanted:
        """The options as a user states them."""
        if emit not in ("final", "updates"):
            raise QueryError(
                f"emit={emit!r} is not known: choose 'final', for each row once, when it is "
                f"final, or 'updates', for each row whenever it changes as well"
            )
        ahead = None if max_ahead is None else _micros(max_ahead, "max_ahead", least=0)
        silent = None if idle is None else _micros(idle, "idle", least=1)
        return cls(ahead, emit == "updates", late, silent, max_rows)

    def columns(self) -> list[str]:
        """The columns that rows get beside those of the query."""
        return [FINAL] * self.updates + [LATE] * self.late

    def check_names(self, taken: list[str]) -> None:
        """Refuse a column of the result that has the name of one of ours."""
        for name in self.columns():
            if name in taken:
                raise QueryError(
                    f"the result has a column {name!r} of its own, which this stream would add: "
                    f"give the aggregate or the key another name"
                )


def _micros(given: DurationLike, what: str, least: int) -> int:
    """A duration in microseconds; a whole number has no unit, which a stream's times have."""
    length = duration(given, what, least=least)
    if length.value and not length.textual:
        raise QueryError(
            f"{what} is the whole number {given}, but a stream's times are timestamps, and {given} "
            f"of what is not said: {with_unit(what, length.value)}"
        )
    return length.value
