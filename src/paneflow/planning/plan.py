"""The plan of a query: what is computed, by which means, and the reasons in words.

The planner reads laws and window classes; it never gives up a law silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from paneflow._display import counted, table_html
from paneflow.aggregates.aggregate import Aggregate, Constant, Multiset
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.operator import Operator, share
from paneflow.aggregates.values import kind_of
from paneflow.planning.merge_choice import check_merge
from paneflow.windows import Sliding, Window
from paneflow.windows.many_rows import RowCount


@dataclass(frozen=True, repr=False)
class Plan:
    """How a query is answered; print it to see the reasons.

    Attributes:
        engine: The engine that answers it.
        merge: The algorithm that merges slices into windows.
        operators: What is computed, and the aggregates that need it.
        reasons: Why it is answered this way.
        rows: How many rows there will be; an upper bound, unless all windows slide by time.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.session(5), {"mean": A.mean("v"), "sum": A.sum("v")}, time="t")
        >>> plan = query.explain()
        >>> plan
        Plan(engine='table', merge='auto', 1 operator, 3 reasons)
        >>> plan.operators
        {'float_sum(v)': ('mean', 'sum')}
    """

    engine: str
    merge: str
    operators: Mapping[str, tuple[str, ...]]
    reasons: tuple[str, ...]
    rows: RowCount | None = None

    def __str__(self) -> str:
        lines = [f"engine: {self.engine}", f"merge: {self.merge}"]
        if self.rows is not None:
            lines.append(f"rows: {self.rows}")
        lines.append("operators:")
        for operator, users in self.operators.items():
            lines.append(f"  {operator}  for {', '.join(users)}")
        lines.append("because:")
        lines += [f"  - {reason}" for reason in self.reasons]
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = counted(operator=len(self.operators), reason=len(self.reasons))
        return f"Plan(engine={self.engine!r}, merge={self.merge!r}, {counts})"

    def _repr_html_(self) -> str:
        rows = {"engine": [self.engine], "merge": [self.merge]}
        if self.rows is not None:
            rows["rows"] = [str(self.rows)]
        rows["operators"] = [f"{op} for {', '.join(users)}" for op, users in self.operators.items()]
        return table_html("Plan", rows | {"because": list(self.reasons)})


def _title(operator: Operator, user: Aggregate) -> str:
    """The name of an operator, which tells different operators apart."""
    if isinstance(user, Defined):
        return str(user)
    return f"{operator.name}({', '.join([*operator.columns, *map(str, operator.parameters)])})"


def plan(
    windows: Mapping[str, Window],
    aggregates: Mapping[str, Aggregate],
    schema: pa.Schema | None,
    engine: str,
    merge: str,
) -> Plan:
    """Decide how to answer. Without a schema the operators are those for float columns."""
    check_merge(merge)
    kinds = {
        column: kind_of(schema.field(column).type if schema is not None else pa.float64(), column)
        for aggregate in aggregates.values()
        for column in aggregate.columns
    }
    wanted: dict[Operator, list[str]] = {}
    users: dict[str, list[str]] = {}
    reasons: list[str] = []
    for name, aggregate in aggregates.items():
        if isinstance(aggregate, Constant):
            operators = aggregate.operators(kinds)
            for operator in operators:
                wanted.setdefault(operator, []).append(name)
            if not operators:
                users.setdefault("count", []).append(name)
        else:
            kept = "runs" if isinstance(aggregate, Multiset) else "values"
            users.setdefault(f"{kept}({', '.join(aggregate.columns)})", []).append(name)
            reasons.append(
                f"{aggregate} is holistic: slices keep {kept}, and its partials grow with them"
            )
    for operator, names in wanted.items():
        source, _ = share(list(wanted))[operator]
        users.setdefault(_title(source, aggregates[names[0]]), []).extend(names)
        if not operator.compiled:
            reasons.append(f"{', '.join(names)}: partials are Python objects, not compiled")
    shared = [f"{op} serves {', '.join(n)}" for op, n in users.items() if len(n) > 1]
    reasons += [f"shared: {text}" for text in shared]
    if all(isinstance(w, Sliding) for w in windows.values()):
        reasons.append("all windows are context free: bounds follow from the definition")
    else:
        context = {
            str(w): w.window_class.name for w in windows.values() if not isinstance(w, Sliding)
        }
        for text, class_ in context.items():
            reasons.append(f"{text} is {class_}: its bounds are found in the ordered events")
    if merge == "auto":
        reasons.append(
            "merge is chosen for each window by its rows and slices: SBA where it slides finely, "
            "FlatFAT where it has few, long windows"
        )
    else:
        reasons.append(f"merge={merge} was requested")
    return Plan(engine, merge, {k: tuple(v) for k, v in users.items()}, tuple(reasons))
