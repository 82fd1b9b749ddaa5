"""A table of a TOML file, read key by key, with errors that name the place."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

from paneflow.engines.edge.config.model import ConfigError
from paneflow.errors import PaneflowError
from paneflow.suggesting import suggestion
from paneflow.windows import duration

Value = TypeVar("Value")

_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a table",
    datetime: "a time",
    date: "a date",
    time: "a time of day",
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


class Section:
    """The keys of one table; each is asked for at most once, and the others are refused."""

    def __init__(self, file: Path, title: str, given: Mapping[str, Any]) -> None:
        self.file = file
        self.title = title
        self._given = given
        self._asked: list[str] = []

    def error(self, problem: str) -> ConfigError:
        """An error at this place."""
        return ConfigError(f"{self.file}{f', {self.title}' if self.title else ''}: {problem}")

    def guarded(self, key: str, make: Callable[[], Value]) -> Value:
        """What a function gives; its complaints become errors at this place."""
        try:
            return make()
        except PaneflowError as error:
            raise self.error(f"{key}: {error}") from error

    def has(self, key: str) -> bool:
        return key in self._given

    def is_table(self, key: str) -> bool:
        return isinstance(self._given.get(key), dict)

    def require(self, key: str, example: str) -> None:
        """Refuse a table without a key, and show how it is written."""
        if key not in self._given:
            raise self.error(f"{key!r} is missing: write for example {key} = {example}")

    def needed_text(self, key: str, example: str, known: Collection[str] = ()) -> str:
        """A text that cannot be left out."""
        self.require(key, example)
        return str(self.text(key, known))

    def needed_path(self, key: str, example: str) -> Path:
        """A file or a folder that cannot be left out."""
        return self._beside(self.needed_text(key, example))

    def text(self, key: str, known: Collection[str] = ()) -> str | None:
        """A text, one of those that are known if there are any."""
        given: str | None = self._take(key, str)
        if given is not None and known and given not in known:
            raise self.error(f"{key} = {given!r} is not known: {suggestion(given, known)}")
        if given == "":
            raise self.error(f"{key} is empty: leave it out, or write a text")
        return given

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        given = self._take(key, list) or []
        for item in given:
            if not isinstance(item, str) or not item:
                raise self.error(f"{key} is a list of names, but one of them is {item!r}")
        return tuple(given)

    def flag(self, key: str) -> bool:
        """True or false; false if it is not given."""
        return bool(self._take(key, bool))

    def path(self, key: str) -> Path | None:
        """A file or a folder; it is looked for beside the file that names it."""
        given = self.text(key)
        return None if given is None else self._beside(given)

    def seconds(self, key: str) -> float | None:
        """A length of time by the clock, as seconds."""
        given = self.text(key)
        if given is None:
            return None
        return self.guarded(key, lambda: duration(given, key, least=1)).value / 10**6

    def ticks(self, key: str, stamped: bool) -> int | None:
        """A length of time in the unit of the time column: text, or a number where that is one."""
        given = self._take(key, int, str)
        if given is None:
            return None
        length = self.guarded(key, lambda: duration(given, key, least=1))
        if length.textual != stamped:
            wanted = 'text with a unit, such as "1 hour"' if stamped else "a number"
            raise self.error(f"{key} = {given!r} must be {wanted}, like the time of the events")
        return length.value

    def size(self, key: str, default: int) -> int:
        """A number of bytes."""
        given = self.text(key)
        if given is None:
            return default
        found = _SIZE.fullmatch(given.strip())
        size = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
        if size < 1:
            raise self.error(f'{key} = {given!r} is not a size: write for example "64 MB"')
        return size

    def number(self, key: str) -> float | None:
        """A number that is more than 0."""
        given = self._take(key, int, float)
        if given is not None and not 0 < given < float("inf"):
            raise self.error(f"{key} = {given} must be more than 0: leave it out for no limit")
        return None if given is None else float(given)

    def whole(self, key: str) -> int | None:
        """A whole number that is more than 0."""
        given: int | None = self._take(key, int)
        if given is not None and given < 1:
            raise self.error(f"{key} = {given} must be more than 0: leave it out, or correct it")
        return given

    def table(self, key: str) -> Section | None:
        """A table in this table."""
        given = self._take(key, dict)
        return None if given is None else Section(self.file, self._below(key), given)

    def tables(self, key: str) -> list[Section]:
        """An array of tables, which may be written as one table."""
        given = self._take(key, list, dict) or []
        if isinstance(given, dict):
            return [Section(self.file, self._below(key), given)]
        for item in given:
            if not isinstance(item, dict):
                raise self.error(f"{key} is made of tables, but one item is {item!r}")
        title = f"[{self._below(key)}]"
        return [Section(self.file, f"{title} {at}", item) for at, item in enumerate(given, 1)]

    def raw(self, key: str) -> Any:
        """A value of any kind, for somebody else to check."""
        self._asked.append(key)
        return self._given.get(key)

    @property
    def names(self) -> list[str]:
        """All keys of the table."""
        return list(self._given)

    def finish(self) -> None:
        """Refuse keys that nobody has asked for."""
        for key in self._given:
            if key not in self._asked:
                raise self.error(f"{key!r} is not known: {suggestion(key, self._asked)}")

    def _beside(self, given: str) -> Path:
        return self.file.parent / Path(given).expanduser()

    def _take(self, key: str, *kinds: type) -> Any:
        self._asked.append(key)
        given = self._given.get(key)
        if given is None or type(given) in kinds:
            return given
        told = _KINDS.get(type(given), type(given).__name__)
        raise self.error(f"{key} must be {_KINDS[kinds[0]]}, but {given!r} is {told}")

    def _below(self, key: str) -> str:
        return f"[{'.'.join([*self.title.strip('[]').split('.'), key]).strip('.')}]"
