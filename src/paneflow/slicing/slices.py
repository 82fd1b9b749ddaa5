"""Slices: a query's partial results as an Arrow table that can be stored, sent and merged.

One row is one slice of one key: the events between two neighbouring edges of the query's time
windows, or a session of this part of the data. The table carries its format version, the query it
belongs to, and the types of the columns it was cut from, so that it cannot be mistaken for another.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow._display import named_texts, shortened, table_html
from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query

VERSION = 1
MARK = b"paneflow.slices"

SLICING = "slicing"
START = "start"
LAST = "last"
ROWS = "rows"
TIME_SLICES = "time"
FORMS = "forms"
"""In a query's identity: the forms of partials that are not the first."""


class Slices:
    """The partial results of a query over part of the data.

    `query.slice` makes them, `merge` puts parts together, and `query.finish` makes rows of them. To
    store slices, write `slices.table` in a format that keeps Arrow's types and metadata, such as
    Parquet; `Slices(table)` reads them back.

    Args:
        table: The pyarrow table of slices that `query.slice` made, with its metadata.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(10), {"peak": A.max("v")}, time="t")
        >>> monday, tuesday = query.slice([{"t": 1, "v": 5}]), query.slice([{"t": 4, "v": 7}])
        >>> query.finish(pf.Slices(monday.table).merge(tuesday))["peak"].to_pylist()
        [7]
    """

    def __init__(self, table: pa.Table) -> None:
        if not isinstance(table, pa.Table):
            raise InputError(
                f"slices are kept in a pyarrow table, not in a {type(table).__name__}: pass the "
                f"`table` of slices that query.slice made"
            )
        self.table = table
        self.identity, self.source = _about(table.schema.metadata)
        self.whole = False
        """Whether the rows are known to be as they were cut."""

    @classmethod
    def made(cls, table: pa.Table, identity: dict[str, Any], source: pa.Schema) -> Slices:
        """Slices that have just been cut, marked with what they belong to.

        Args:
            table: The rows.
            identity: The query they were cut by, as `paneflow.slicing.layout` describes it.
            source: The schema of the table they were cut from.

        Returns:
            The slices.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> cut = query.slice([{"t": 1, "v": 5}])
            >>> len(pf.Slices.made(cut.table, cut.identity, cut.source))
            1
        """
        about = {
            "version": VERSION,
            "query": identity,
            "source": base64.b64encode(source.remove_metadata().serialize()).decode(),
        }
        slices = cls(table.replace_schema_metadata({MARK: json.dumps(about).encode()}))
        slices.whole = True
        return slices

    def with_table(self, table: pa.Table) -> Slices:
        """Slices of the same query with other rows, known to be as they were cut.

        Args:
            table: The rows.

        Returns:
            The slices.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> cut = query.slice([{"t": 1, "v": 5}, {"t": 9, "v": 2}])
            >>> len(cut.with_table(cut.table.slice(0, 1)))
            1
        """
        slices = copy.copy(self)
        slices.table = table.replace_schema_metadata(self.table.schema.metadata)
        slices.whole = True
        return slices

    def merge(self, other: Slices) -> Slices:
        """The slices of two parts of the data.

        Args:
            other: The slices of another part, cut by the same query. Of events at the same time,
                those of this part come first.

        Returns:
            The slices of both.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.slice([{"t": 1, "v": 5}]).merge(query.slice([{"t": 9, "v": 2}]))
            Slices(rows: 2; windows: tumbling(5); aggregates: peak)
        """
        if not isinstance(other, Slices):
            raise InputError(
                f"slices can only be merged with slices, not with a {type(other).__name__}: make "
                f"them with query.slice"
            )
        check_forms("these slices hold", other.identity, self.identity, "cut both again")
        _same("query", self.identity, other.identity)
        _same("column types", _types(self.source), _types(other.source))
        merged = self.with_table(
            pa.concat_tables([self.table, _like(other.table, self.table.schema)])
        )
        merged.whole = self.whole and other.whole
        return merged

    def require(self, identity: dict[str, Any], query: Query) -> None:
        """Refuse to finish the slices of another query.

        Args:
            identity: The query that is to finish them, as `paneflow.slicing.layout` describes it.
            query: That query, for the error.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> cut = query.slice([{"t": 1, "v": 5}])
            >>> cut.require(cut.identity, query)
        """
        check_forms("these slices hold", self.identity, identity, "cut them again")
        if self.identity != identity:
            raise InputError(
                f"these slices belong to another query: they hold {self.identity}, and "
                f"{query!r} needs {identity}: finish them with the query that cut them"
            )

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        shown = (f"{name}: {', '.join(items)}" for name, items in self._parts().items())
        return f"Slices({'; '.join(shown)})"

    def _repr_html_(self) -> str:
        return table_html("Slices", self._parts())

    def _parts(self) -> dict[str, list[str]]:
        """How many slices there are, and what they belong to."""
        parts = {
            "rows": [f"{len(self):,}"],
            "windows": shortened(named_texts(self.identity["windows"])),
            "aggregates": shortened(self.identity["aggregates"]),
            "key": shortened(self.identity.get("key", ())),
        }
        return {name: items for name, items in parts.items() if items}


def check_forms(what: str, found: Any, asked: Any, advice: str) -> None:
    """Refuse partials of the same query in the form of another version."""
    ours, theirs = asked.get(FORMS, {}), found.get(FORMS, {})
    if ours != theirs and {**asked, FORMS: 0} == {**found, FORMS: 0}:
        named = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
        raise InputError(
            f"{what} the partials of {', '.join(map(repr, named))} in a form that this "
            f"paneflow does not read, because another version wrote them: {advice}, or use the "
            f"paneflow that wrote them"
        )


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def _same(what: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise InputError(
            f"slices of different {what} cannot be merged: {ours} and {theirs}: cut both with "
            f"the same query, over tables with the same columns"
        )


def _like(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same slices in the types of a schema: some file formats change types."""
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError(
            f"slices of one query were stored in types that do not fit each other ({error}): store "
            f"them in a format that keeps Arrow's types, or cut both again"
        ) from None


def _about(metadata: dict[bytes, bytes] | None) -> tuple[dict[str, Any], pa.Schema]:
    """The query that the slices of a table belong to, and the columns they were cut from."""
    if not metadata or MARK not in metadata:
        raise InputError(
            "this table does not hold slices: make them with query.slice(table), and keep the "
            "table's metadata when you store it"
        )
    try:
        about = json.loads(metadata[MARK])
        version, identity = about["version"], about["query"]
        source = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(about["source"], validate=True)))
        known = all(isinstance(identity[part], dict) for part in ("windows", "aggregates"))
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException):
        known = False
    if not known:
        raise InputError(
            "these slices are damaged: the table's metadata cannot be read; store the table of "
            "slices as it is, with its metadata, or cut them again with query.slice"
        )
    if version != VERSION:
        raise InputError(
            f"these slices have format version {version!r}, and this paneflow reads "
            f"version {VERSION}: read them with the paneflow that wrote them, or cut them again"
        )
    return identity, source
