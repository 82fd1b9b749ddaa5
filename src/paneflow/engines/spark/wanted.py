"""What a user may ask of a stream beside the query itself."""

from __future__ import annotations

from dataclasses import dataclass

from paneflow.errors import QueryError
from paneflow.windows import duration

FINAL = "final"
LATE = "late"


@dataclass(frozen=True)
class Wanted:
    """Options of a stream; durations are in microseconds."""

    max_ahead: int | None = None
    updates: bool = False
    late: bool = False
    idle: int | None = None

    @classmethod
    def of(
        cls,
        max_ahead: object = None,
        emit: str = "final",
        late: bool = False,
        idle: object = None,
    ) -> Wanted:
        """The options as a user states them."""
        if emit not in ("final", "updates"):
            raise QueryError(
                f"emit={emit!r} is not known: choose 'final', for each row once, when it is "
                f"final, or 'updates', for each row whenever it changes as well"
            )
        ahead = None if max_ahead is None else duration(max_ahead, "max_ahead", least=0).value
        silent = None if idle is None else duration(idle, "idle", least=1).value
        return cls(ahead, emit == "updates", late, silent)

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
