"""What nodes log: a line of JSON for machines, or a line of text for a terminal.

A module logs through `logging` what has happened, in a few words without figures, and puts the
figures beside it: `log.warning("a stranger was refused", extra={"fields": {"address": address}})`.
So lines of one kind can be found and counted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

_COLOURS = {"WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"}
_PLAIN = "\033[0m"


class JsonLines(logging.Formatter):
    """One JSON object to a line: time, level, node, event, and what belongs to the event."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "node": self._node,
            "event": record.getMessage(),
            **{name: v for name, v in _fields(record).items() if name not in TAKEN},
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class TextLines(logging.Formatter):
    """The same for people, with colours if they can be seen."""

    def __init__(self, node: str, colours: bool = False) -> None:
        super().__init__()
        self._node = node
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it where an unexpected error came from."""
        level = record.levelname
        colour = _COLOURS.get(level, "") if self._colours else ""
        fields = "".join(f"  {name}={_quoted(v)}" for name, v in _fields(record).items())
        line = (
            f"{_time(record).astimezone():%H:%M:%S} {colour}{level.lower():7}"
            f"{_PLAIN if colour else ''} {self._node}: {_one_line(record.getMessage())}{fields}"
        )
        if record.exc_info:
            line += f"\n{self.formatException(record.exc_info)}"
        return line


TAKEN = ("time", "level", "node", "event", "trace")
"""What fields cannot be called, because every line has these."""


def log_to(
    stream: TextIO, node: str, *, as_json: bool | None = None, level: int = logging.INFO
) -> logging.Handler:
    """Log what paneflow says to a stream: as JSON, unless a person looks at it.

    Returns the handler, which `logging.getLogger("paneflow").removeHandler` takes away again.
    """
    seen = stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        JsonLines(node) if (not seen if as_json is None else as_json) else TextLines(node, seen)
    )
    log = logging.getLogger("paneflow")
    log.addHandler(handler)
    log.setLevel(level)
    return handler


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    found = getattr(record, "fields", None)
    return found if isinstance(found, Mapping) else {}


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _quoted(value: object) -> str:
    """A value that can be told from what stands beside it."""
    text = str(value)
    return text if text and text.isprintable() and " " not in text else json.dumps(text)


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
