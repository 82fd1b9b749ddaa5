"""Waits that would never end, because rows or late events fill an outbox that nobody reads.

Both sides of a stream are bounded: if rows are not read, the stream stops working, and then pushing
waits. A thread that would have to read them itself must not wait for them; it is told so instead.
"""

from __future__ import annotations

import time

from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import UnsupportedError


def check_room_can_come(results: Outbox, late: Outbox, since: float) -> None:
    """Refuse to wait longer for room to push, if only this thread could make it.

    `since` is when the push began to wait, by `time.perf_counter()`.
    """
    if time.perf_counter() - since < tuning.patience:
        return
    for box, what, call in (
        (results, "rows", "stream.results()"),
        (late, "late events", "stream.late()"),
    ):
        if box.full and not box.read_elsewhere:
            raise UnsupportedError(
                f"{box.rows} {what} wait to be read, and no other thread reads them, so "
                f"pushing would wait forever: call {call} between pushes, or read them in "
                f"another thread"
            )


def check_late_can_end(results: Outbox, since: float) -> None:
    """Refuse to wait longer for the last late events, if unread rows hold them back.

    `since` is when the reader began to wait, by `time.monotonic()`.
    """
    stuck = results.full and not results.read_elsewhere
    if stuck and time.monotonic() - since > tuning.patience:
        raise UnsupportedError(
            f"{results.rows} rows wait to be read, and no other thread reads them, so "
            f"the last late events would never come: read stream.results() to its end first, "
            f"or call it in another thread"
        )
