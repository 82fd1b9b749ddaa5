"""What slices of a query hold: which columns, under which names, and what must not be sliced.

Every engine that cuts or reads slices uses this layout.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.aggregates._functions.identity import digest_of
from paneflow.aggregates.aggregate import Aggregate, Kinds, Multiset, Ordered
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.lowering import Lowering, column_set
from paneflow.aggregates.operator import Operator
from paneflow.aggregates.sequences import Applied
from paneflow.aggregates.values import kind_of
from paneflow.errors import UnsupportedError
from paneflow.slicing.slices import FORMS
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def check_cuttable(query: Query) -> None:
    """Refuse windows and aggregates whose slices of two parts could not be merged."""
    for label, window in query.windows.items():
        if not isinstance(window, Sliding | Session):
            raise UnsupportedError(
                f"window {label!r} ({window}) cannot be sliced part by part: its bounds depend "
                f"on the order of all events of a key, which no part knows; use query.over on "
                f"the whole table, or time windows and sessions"
            )
    for name, aggregate in query.aggregates.items():
        if isinstance(aggregate, Defined) and not aggregate.laws.commutative:
            raise UnsupportedError(
                f"aggregate {name!r} ({aggregate}) is not commutative: events of two parts may "
                f"interleave within one slice, and its partials could not be put in order; use "
                f"query.over on the whole table"
            )


def check_storable(operator: Operator) -> None:
    """Refuse partials that are Python objects of unknown form."""
    if not operator.compiled and operator.dump is None:
        raise UnsupportedError(
            f"the aggregate over {', '.join(operator.columns)} runs as plain Python and its "
            f"partials are Python objects, which slices do not hold: write lift and combine "
            f"over numbers, or use query.over on the whole table"
        )


def not_sliceable(query: Query, source: pa.Schema) -> str | None:
    """Why a query over such columns cannot be sliced part by part; None if it can."""
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    try:
        check_cuttable(query)
        for operator in stored_operators(query, kinds):
            check_storable(operator)
        identity_of(query)
    except UnsupportedError as reason:
        return str(reason)
    return None


def identity_of(query: Query) -> dict[str, Any]:
    """What two sets of slices must have in common to be merged."""

    def text(aggregate: Any) -> str:
        # A function's own repr holds an address, which another process does not share.
        if isinstance(aggregate, Applied):
            returns = str(aggregate.returns)
            title = aggregate.title
            return f"{title} {returns} {digest_of(title, aggregate.function)}"
        if not isinstance(aggregate, Defined):
            return _written_out(aggregate)
        user = aggregate.definition
        roles = (user.lift, user.combine, user.lower, user.identity)
        return f"{aggregate} {digest_of(str(aggregate), roles)}"

    identity = {
        "windows": {label: str(window) for label, window in query.windows.items()},
        "aggregates": {name: text(a) for name, a in query.aggregates.items()},
        "key": list(query.key),
        "time": query.time,
    }
    # The first form is not named, so that slices stored before forms existed stay readable.
    forms = {name: a.form for name, a in query.aggregates.items() if a.form > 1}
    return identity | ({FORMS: forms} if forms else {})


def _written_out(aggregate: Aggregate) -> str:
    """An aggregate with all its parameters, as stored slices name it: this text never changes."""
    written = (f"{field.name}={getattr(aggregate, field.name)!r}" for field in fields(aggregate))
    return f"{type(aggregate).__qualname__}({', '.join(written)})"


def stored_operators(query: Query, kinds: Kinds) -> dict[Operator, str]:
    """The operators whose partials slices hold, and the prefix of their columns."""
    sources = Lowering(query.aggregates, kinds).operators
    return {
        op: f"{k}:{op.name.split(':')[0]}({', '.join(op.columns)})" for k, op in enumerate(sources)
    }


def counted_columns(query: Query) -> dict[tuple[str, ...], str]:
    """The sets of columns whose non-null events are counted, and the column that holds it."""
    sets = dict.fromkeys(column_set(a.columns) for a in query.aggregates.values() if a.columns)
    return {columns: f"count({', '.join(columns)})" for columns in sets}


def runs_columns(query: Query) -> dict[str, str]:
    """The columns of which slices keep sorted runs, and where."""
    kept = [a.columns[0] for a in query.aggregates.values() if isinstance(a, Multiset)]
    return {column: f"runs({column})" for column in kept}


def sequence_columns(query: Query) -> dict[tuple[str, ...], str]:
    """The sets of columns of which slices keep every value in order, and where."""
    kept = [a.columns for a in query.aggregates.values() if isinstance(a, Ordered)]
    return {columns: f"values({', '.join(columns)})" for columns in kept}
