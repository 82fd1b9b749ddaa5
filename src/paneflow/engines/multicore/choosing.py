"""Which strategy answers a stream, and why.

A strategy asked for by name is used, or refused with a reason. For `auto` with one worker, there is
nothing to share. With several, they share the batches of time windows whose partials have a fixed
size; a query's other windows are kept by one worker beside that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paneflow._display import counted, table_html
from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.lowering import Lowering
from paneflow.engines.multicore.contract import Strategy
from paneflow.engines.multicore.costly_functions import may_take_long
from paneflow.engines.multicore.multiway.designs import (
    MultiQueue,
    MultiQueueLockFree,
    TupleGateSingle,
)
from paneflow.engines.multicore.multiway.slice_hive import SliceHive
from paneflow.engines.multicore.multiway.tuple_gate_parallel import TupleGateParallel
from paneflow.engines.multicore.multiway.window_hive import WindowHive
from paneflow.engines.multicore.one_worker.by_slices import merge_reasons, timed_by_slices
from paneflow.engines.multicore.one_worker.single import Single
from paneflow.engines.multicore.slices.slices import Slices
from paneflow.engines.multicore.topologies.handshake import Handshake
from paneflow.engines.multicore.topologies.hash_once import HashOnce
from paneflow.engines.multicore.topologies.pane_line import PaneLine
from paneflow.engines.multicore.topologies.pane_ring import PaneRing
from paneflow.engines.multicore.topologies.round_robin import RoundRobin
from paneflow.engines.multicore.topologies.round_robin_cyclic import RoundRobinCyclic
from paneflow.engines.multicore.workers.active import Active, private
from paneflow.engines.multicore.workers.agnostic import Agnostic
from paneflow.errors import QueryError, UnsupportedError
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import check_merge

if TYPE_CHECKING:
    from paneflow.query import Query

BY_NAME: dict[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Single,
        Slices,
        Handshake,
        RoundRobin,
        HashOnce,
        RoundRobinCyclic,
        PaneRing,
        PaneLine,
        Active,
        Agnostic,
        MultiQueue,
        MultiQueueLockFree,
        TupleGateSingle,
        TupleGateParallel,
        WindowHive,
        SliceHive,
    )
}

MERGING: tuple[type[Strategy], ...] = (Single, Slices, Active)  # with what derives from them
"""Strategies that merge slices into windows by an algorithm that can be chosen."""
EARLY = (
    "emit='updates' shows windows before they are final, and only one worker can look into open "
    "windows"
)
NOT_SHARED = (
    "one worker: handing out events or windows of this query would take longer than the work on "
    "them"
)
BY_PANES = "user-defined functions may take long, so workers share what windows are made of"
NARROW = 8
"""Numbers in a partial up to which it is merged about as fast as an event is folded into it."""
ONE_WORKER = "one worker: the thread that puts events in order makes slices and windows too"
ONE_UPDATER = (
    "the threads that push merge their sources, and one thread makes slices and windows of them"
)


@dataclass(frozen=True, repr=False)
class StreamPlan:
    """How a stream is answered; print it to see the reasons.

    Attributes:
        strategy: The name of the strategy.
        workers: How many threads share the work.
        reasons: Why this strategy was chosen.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
        >>> with query.open() as stream:
        ...     print(stream.plan)
        strategy: single
        workers: 1
        because:
          - one worker: the thread that puts events in order makes slices and windows too
          - tumbling(5) is merged by recalculate for peak: a slice is in 1 window: nothing is \
gained by keeping merges
    """

    strategy: str
    workers: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"strategy: {self.strategy}", f"workers: {self.workers}", "because:"]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.reasons)])

    def __repr__(self) -> str:
        counts = counted(reason=len(self.reasons))
        return f"StreamPlan(strategy={self.strategy!r}, workers={self.workers}, {counts})"

    def _repr_html_(self) -> str:
        how = {"strategy": [self.strategy], "workers": [str(self.workers)]}
        return table_html("Plan of a stream", how | {"because": list(self.reasons)})


def choose(
    query: Query,
    kinds: Kinds,
    workers: int,
    strategy: str,
    updates: bool = False,
    merge: str = "auto",
) -> tuple[type[Strategy], StreamPlan]:
    """The strategy to answer with, and the reasons; refused if it cannot serve the query.

    `updates`: rows are to be shown before they are final. `merge`: the algorithm by which slices
    are to be merged into windows.
    """
    check_asked(query, kinds, merge)
    found, plan = _choose(query, kinds, workers, strategy, updates, merge)
    merges: list[str] = []
    if issubclass(found, Single | Slices):
        merges = merge_reasons(query, kinds, merge)
    elif found is Active:
        shares = {label: private(w, 0, workers) for label, w in query.windows.items()}
        merges = merge_reasons(query.with_windows(shares), kinds, merge)
    return found, replace(plan, reasons=(*plan.reasons, *merges))


def _choose(
    query: Query, kinds: Kinds, workers: int, strategy: str, updates: bool, merge: str
) -> tuple[type[Strategy], StreamPlan]:
    if not isinstance(strategy, str) or strategy not in ("auto", *BY_NAME):
        raise QueryError(
            f"strategy={strategy!r} is not known: choose 'auto', {', '.join(map(repr, BY_NAME))}"
        )
    forced = merge != "auto"
    if strategy != "auto":
        found = BY_NAME[strategy]
        why = found.refuses(query, kinds)
        if updates and found is not Single:
            why = f"{EARLY}: choose 'single' or 'auto'"
        elif forced and not issubclass(found, MERGING):
            why = (
                f"merge={merge!r} would have no effect, because it does not merge slices into "
                f"windows by such an algorithm: choose 'single', 'slices' or 'active', or leave "
                f"merge out"
            )
        if why is not None:
            raise UnsupportedError(f"strategy={strategy!r} cannot answer this query: {why}")
        asked = f"strategy={strategy!r} was asked for"
        if issubclass(found, Single):
            why = ONE_WORKER if found is Single else ONE_UPDATER
            return found, StreamPlan(strategy, 1, (asked, why))
        return found, StreamPlan(strategy, workers, (asked,))
    if updates and workers > 1:
        return Single, StreamPlan(Single.name, 1, (EARLY,))
    if workers == 1:
        return Single, StreamPlan(Single.name, 1, (ONE_WORKER,))
    timed = timed_by_slices(query, kinds)
    if timed and is_shareable(query, kinds) and pays(query, timed):
        return Slices, StreamPlan(Slices.name, workers, tuple(_shared(query, timed)))
    if not timed and not forced and has_functions(query) and PaneLine.refuses(query, kinds) is None:
        return PaneLine, StreamPlan(PaneLine.name, workers, (BY_PANES,))
    return Single, StreamPlan(Single.name, 1, (NOT_SHARED,))


def is_shareable(query: Query, kinds: Kinds) -> bool:
    """Whether it pays to deal events out by key, and to fold those of each share side by side.

    It does not where folding runs under the interpreter lock, where partials are so wide that they
    leave the cache, or where the events of a slice are folded as a whole.
    """
    operators = Lowering(query.aggregates, kinds).operators
    return all(
        op.compiled
        and op.fold_many is None
        and all((c.width or 1) <= NARROW for c in op.components)
        for op in operators
    )


def pays(query: Query, timed: Collection[str]) -> bool:
    """Whether two workers that share batches are faster than one worker.

    They are where all windows are made of slices and events are put in no order: nothing of a
    user's is called, which would have to fail on the same event. Otherwise, only if functions of
    the user may take long. Without a key there is nothing to deal out.
    """
    if has_functions(query):
        return any(
            may_take_long(function)
            for a in query.aggregates.values()
            if isinstance(a, Defined)
            for function in (a.definition.lift, a.definition.combine)
        )
    return bool(query.key) and len(timed) == len(query.windows)


def has_functions(query: Query) -> bool:
    """Whether user-defined functions are called, which may take long."""
    return any(isinstance(a, Defined) for a in query.aggregates.values())


def _shared(query: Query, timed: Iterable[str]) -> Iterator[str]:
    """Which windows workers share, and who answers the others."""
    yield (
        f"{', '.join(timed)}: workers share batches, which they deal out by key, and then go on "
        f"with a share of the keys each"
    )
    others = [label for label in query.windows if label not in timed]
    if others:
        yield f"{', '.join(others)}: not made of slices, so one worker answers beside the others"


def check_asked(query: Query, kinds: Kinds, merge: str) -> None:
    """Refuse an algorithm that has nothing to merge, or needs a law that an aggregate breaks."""
    if check_merge(merge) == "auto":
        return
    if not timed_by_slices(query, kinds):
        raise UnsupportedError(
            f"merge={merge!r} would have no effect: in a stream only tumbling and sliding windows "
            f"of aggregates with partials of a fixed size are merged from slices, and this query "
            f"has none; leave merge out"
        )
    for operator in Lowering(query.aggregates, kinds).operators:
        MERGERS[merge].check(operator)


def without_partial(query: Query) -> Query:
    """The query without incomplete windows: rows that end long ago could not come in order."""
    return query.with_windows({label: w.without_partial() for label, w in query.windows.items()})
