"""The commit of a sink: how far a stream has come, in text that detects damage to itself."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from paneflow.engines.spark.sinks.lease import Lease, name_of
from paneflow.engines.spark.storage.contract import Storage
from paneflow.engines.spark.storage.places import active_session, storage_of
from paneflow.engines.spark.versions import (
    VERSION,
    check_query,
    check_version,
    stream_identity,
)
from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query

FOLDER = "paneflow"
"""The folder of a checkpoint that holds its commits; Spark's part is beside it."""
OLD_COMMIT = "commit.json"
"""The only commit, as versions before 4 wrote it."""
CHECK = "check"

BEGUN: dict[str, Any] = {
    "batch": -1,
    "seen": None,
    "watermark": None,
    "late": 0,
    "dropped": 0,
    "chunks": [],
    "events": None,
    "closing": None,
    "beats": False,
    "every": False,
    "number": 0,
    "run": 0,
    "token": "",
    "rivals": [],
}
"""The state before the first batch; also what older versions did not write. `events` is the batch
that kept events and marks, if any, `every` whether each batch was committed. `number` counts
commits, `run` the runs that began; `token` tells runs apart that begin at the same time, and
`rivals` are the runs that may still be busy with the batch that comes next. Beside these a state
has `files`, the checksums of the files that it needs."""


@dataclass(frozen=True)
class Progress:
    """How far a stream that was started by `write_stream` has come.

    Attributes:
        batch: The last batch that is done; -1 before the first.
        watermark: The time up to which windows have been emitted; None before the first batch.
        late: How many events arrived after all their windows had been emitted.
        dropped: How many events had no time, or one too far ahead.

    Example:
        >>> from paneflow.spark import Progress
        >>> Progress(batch=3, watermark=None, late=0, dropped=1).batch
        3
    """

    batch: int
    watermark: datetime | None
    late: int
    dropped: int


def progress(checkpoint: str | os.PathLike[str]) -> Progress:
    """How far a stream has come, whether it is running or not.

    Args:
        checkpoint: The checkpoint that was given to `write_stream`. A URI of another file system
            needs a running Spark session.

    Returns:
        The progress as of the last batch that is done.

    Example:
        >>> import paneflow.spark
        >>> paneflow.spark.progress("somewhere/else")
        Traceback (most recent call last):
        ...
        paneflow.errors.InputError: somewhere/else holds no commit of write_stream: name the \
checkpoint of a stream that has done a batch
    """
    state = stored(storage_of(active_session(), checkpoint, "checkpoint").within(FOLDER))
    if state is None or state["batch"] < 0:
        raise InputError(
            f"{checkpoint} holds no commit of write_stream: name the checkpoint of a stream that "
            f"has done a batch"
        )
    micros = state["watermark"]
    moment = None
    if micros is not None:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return Progress(state["batch"], moment, state["late"], state["dropped"])


def begun(query: Query, beats: bool) -> dict[str, Any]:
    """The state of a query's stream before the first batch."""
    identity = json.loads(json.dumps(stream_identity(query)))
    own = {"version": VERSION, "query": identity, "beats": beats, "every": True, "files": {}}
    return BEGUN | own


def check_goes_on(found: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse a state that is not of the stream that `asked` would begin."""
    check_query(found["query"], asked["query"])
    if found["beats"] != asked["beats"]:
        raise InputError(
            f"the checkpoint's stream was started {'with' if found['beats'] else 'without'} idle, "
            f"and Spark cannot go on with other sources: start it as before, or name a new "
            f"checkpoint"
        )


def to_text(state: dict[str, Any]) -> str:
    """A state with its checksum."""
    return json.dumps(state | {CHECK: _check_of(state)})


def checksum(data: bytes) -> str:
    """A checksum that tells a file from a damaged one."""
    return hashlib.sha256(data).hexdigest()


def damaged(storage: Storage, what: str) -> InputError:
    """The error for a checkpoint that a stream cannot continue from."""
    return InputError(
        f"the stream's state in {storage.uri} is damaged: {what}. Restore the whole checkpoint "
        f"from a copy, or start over with a new checkpoint and a new sink"
    )


def stored(storage: Storage) -> dict[str, Any] | None:
    """The state that was committed last, checked; None if there is none."""
    name = OLD_COMMIT
    try:
        newest = Lease(storage).newest()
        if newest is not None:
            name = name_of(newest[0])
        elif OLD_COMMIT not in storage.names():
            return None
        data = storage.read(OLD_COMMIT) if newest is None else newest[1]
    except OSError as error:
        raise damaged(storage, f"{name} cannot be read ({error.strerror})") from None
    try:
        found: Any = json.loads(data)
    except ValueError:
        raise damaged(storage, f"{name} holds no JSON") from None
    if not isinstance(found, dict) or not _is_count(found.get("version")):
        raise damaged(storage, f"{name} has no version")
    check_version(found["version"])
    given = found.pop(CHECK, None)
    if given is None and found["version"] < 3:
        whole = found.pop("whole", False)
        kept = {"events": found.get("batch")} if whole else {}
        found = BEGUN | found | {"files": {}} | kept
    elif given != _check_of(found):
        raise damaged(storage, f"{name} is not as it was written")
    found = BEGUN | found
    if not _is_state(found) or found["number"] != (newest[0] if newest else 0):
        raise damaged(storage, f"{name} holds no state")
    state: dict[str, Any] = found
    return state


def _check_of(state: dict[str, Any]) -> str:
    return checksum(json.dumps(state, sort_keys=True).encode())


def _is_count(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_time(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and -(2**63) <= given < 2**63


def _is_state(found: dict[str, Any]) -> bool:
    """Whether every entry has the right type."""
    closing, events = found.get("closing"), found.get("events")
    return (
        set(BEGUN) <= set(found)
        and (found["batch"] == -1 or _is_count(found["batch"]))
        and all(found[name] is None or _is_time(found[name]) for name in ("seen", "watermark"))
        and all(_is_count(found[name]) for name in ("late", "dropped"))
        and isinstance(found["chunks"], list)
        and all(map(_is_count, found["chunks"]))
        and (events is None or _is_count(events))
        and all(_is_count(found[name]) for name in ("number", "run"))
        and isinstance(found["token"], str)
        and isinstance(found["rivals"], list)
        and all(map(_is_count, found["rivals"]))
        and all(isinstance(found[name], bool) for name in ("beats", "every"))
        and all(isinstance(found.get(name), dict) for name in ("files", "query"))
        and (closing is None or (isinstance(closing, dict) and _says_when(closing)))
    )


def _says_when(closing: dict[str, Any]) -> bool:
    return _is_count(closing.get("batch")) and _is_time(closing.get("watermark"))
