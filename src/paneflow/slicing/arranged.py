"""The columns of a table in total order: each is sorted once, and shared by all parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Events


class Arranged:
    """Columns in total order, made when first asked for."""

    def __init__(self, events: Events, columns: Mapping[str, Column]) -> None:
        self.events = events
        self.columns = columns
        self._made: dict[tuple[str, str], Array] = {}
        self._lock = threading.Lock()

    def form(self, name: str, form: str) -> Array:
        """A column's values in the form that an operator asks for."""
        column = self.columns[name]
        if form == "float" and column.kind is Kind.FLOAT:
            form = "value"
        return self._once(name, form, lambda: column.form(form))

    def ranks(self, name: str) -> Array:
        """The ranks of a column's values."""
        return self._once(name, "ranks", lambda: self.columns[name].ranked[0])

    def valid(self, name: str) -> Array | None:
        """Which values of a column are not null; None if all are."""
        valid = self.columns[name].valid
        return None if valid is None else self._once(name, "valid", lambda: valid)

    def _once(self, name: str, what: str, read: Callable[[], Array]) -> Array:
        with self._lock:
            if (name, what) not in self._made:
                self._made[name, what] = self.events.arrange(read())
            return self._made[name, what]
