"""Whether the rows of the tree are those that the table engine makes of all readings."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.demo.edge.layout import QUERY
from paneflow.errors import PaneflowError

ORDER = [(name, "ascending") for name in ("end", "window", "house", "plug", "start")]


class Different(PaneflowError):
    """The tree has given other rows than the table engine."""


def compare(rows: pa.Table, readings: pa.Table) -> int:
    """How many rows of the tree equal those of the table engine, which must be all of them.

    Sessions of a stream have no number, so theirs are not compared.
    """
    incomplete = pc.sum(pc.invert(rows["complete"])).as_py() or 0
    if incomplete:
        raise Different(f"{incomplete:,} rows of the tree are incomplete")
    mine, right = _plain(rows.drop_columns("complete")), _plain(QUERY.over(readings))
    if mine.num_rows != right.num_rows:
        raise Different(f"the tree has {mine.num_rows:,} rows, the table engine {right.num_rows:,}")
    for name in right.column_names:
        if not mine[name].equals(right[name]):
            raise Different(f"the tree and the table engine differ in {name!r}")
    return int(mine.num_rows)


def _plain(rows: pa.Table) -> pa.Table:
    """Rows in one order, with labels as text and without the numbers of sessions."""
    label = rows["window"].cast(pa.string())
    number = pc.if_else(pc.equal(label, "use"), pa.scalar(None, pa.int64()), rows["seq"])
    for name, column in (("window", label), ("seq", number)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows.sort_by(ORDER).combine_chunks()
