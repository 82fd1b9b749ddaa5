"""Which versions of a stream's state this paneflow can continue from.

State outlives the library that wrote it. State from older versions is read, and upgraded by the
next batch; state from newer versions is refused, since it may mean anything. Partials have
forms of their own (`Aggregate.form`): an older form is refused, for the queries that hold it.

1: the first.
2: a shard has a clock of its own (`unbounded/clocks.py`), for streams that close their windows
   when idle; a sink says in its commit which batch is closing windows for that reason.
3: a sink commits every batch, also one that brought nothing, and its files have checksums.
4: a sink's commits are numbered, and its files are named after the run that wrote them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paneflow.aggregates._functions.identity import digest_of
from paneflow.errors import InputError
from paneflow.slicing.layout import identity_of
from paneflow.slicing.slices import check_forms
from paneflow.windows import Custom

if TYPE_CHECKING:
    from paneflow.query import Query

VERSION = 4


def stream_identity(query: Query) -> dict[str, Any]:
    """What a query must have in common with the one whose state it continues.

    A custom window keeps what its `step` has come to, so that must be the same `step`.
    """
    steps = {
        label: digest_of(str(window), (window.initial, type(window).step))
        for label, window in query.windows.items()
        if isinstance(window, Custom)
    }
    return identity_of(query) | ({"steps": steps} if steps else {})


def check_version(found: int) -> None:
    """Refuse the state of a newer paneflow."""
    if found > VERSION:
        raise InputError(
            f"the stream's state has version {found}, and this paneflow reads versions up to "
            f"{VERSION}: go on with the paneflow that wrote it, or a newer one, or start from a "
            f"new checkpoint"
        )


def check_query(found: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse the state of another query, and partials in a form of another version."""
    check_forms("the stream's state holds", found, asked, "start from a new checkpoint")
    if found != asked:
        raise InputError(
            f"the stream's state belongs to another query ({found}), not to {asked}: name another "
            f"checkpoint, or ask the same question"
        )
