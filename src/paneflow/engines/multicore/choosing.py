"""Which strategy answers a stream, and why.

A strategy asked for by name is used, or refused with a reason. For `auto` with one worker, there is
nothing to share. With several, the windows decide: time and count windows of partials with a fixed
size are shared by panes. Otherwise whole windows are handed out, by the rule of figure 7 in
Mencagli et al., "Harnessing Sliding-Window Execution Semantics for Parallel Stream Processing":
windows whose bounds depend on later events can only be handed out by an emitter that sees all
events (agnostic workers); if bounds are known as events arrive, workers can keep their own windows
(active workers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paneflow._display import counted, table_html
from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.lowering import Lowering
from paneflow.engines.multicore.contract import Strategy
from paneflow.engines.multicore.one_worker.by_slices import merge_reasons, timed_by_slices
from paneflow.engines.multicore.one_worker.single import Single
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
from paneflow.windows import WindowClass

if TYPE_CHECKING:
    from paneflow.query import Query

BY_NAME: dict[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Single,
        Handshake,
        RoundRobin,
        HashOnce,
        RoundRobinCyclic,
        PaneRing,
        PaneLine,
        Active,
        Agnostic,
    )
}

MERGING: tuple[type[Strategy], ...] = (Single, Active)
"""Strategies that merge slices into windows by an algorithm that can be chosen."""
EARLY = (
    "emit='updates' shows windows before they are final, and only one worker can look into open "
    "windows"
)
ONE_WORKER = "one worker: the thread that puts events in order makes slices and windows too"


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
    if found is Single:
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
        elif forced and found not in MERGING:
            why = (
                f"merge={merge!r} would have no effect, because it does not merge slices into "
                f"windows by such an algorithm: choose 'single' or 'active', or leave merge out"
            )
        if why is not None:
            raise UnsupportedError(f"strategy={strategy!r} cannot answer this query: {why}")
        asked = f"strategy={strategy!r} was asked for"
        if found is Single:
            return Single, StreamPlan(Single.name, 1, (asked, ONE_WORKER))
        return found, StreamPlan(strategy, workers, (asked,))
    if updates and workers > 1:
        return Single, StreamPlan(Single.name, 1, (EARLY,))
    if workers == 1:
        return Single, StreamPlan(Single.name, 1, (ONE_WORKER,))
    shared = BY_NAME["pane_line"]
    why = f"merge={merge!r} was asked for" if forced else shared.refuses(query, kinds)
    if why is None:
        reason = "windows are made of panes with partials of a fixed size, which workers share"
        return shared, StreamPlan(shared.name, workers, (reason,))
    name, reason = worker_model(query)
    model = BY_NAME[name]
    reasons = (f"not by panes: {why}", reason)
    why = model.refuses(query, kinds)
    if forced and model not in MERGING:
        why = "they do not merge slices"
    if why is None:
        return model, StreamPlan(name, workers, reasons)
    return Single, StreamPlan(Single.name, 1, (*reasons, f"not by {name} workers: {why}"))


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


def worker_model(query: Query) -> tuple[str, str]:
    """Figure 7: which worker model deals out whole windows, and why."""
    aware = {
        label: window
        for label, window in query.windows.items()
        if window.window_class is WindowClass.FCA
    }
    if aware:
        label, window = next(iter(aware.items()))
        return "agnostic", (
            f"window {label!r} ({window}) is forward-context aware: only an emitter that sees "
            f"all events can tell where it begins and ends"
        )
    return "active", (
        "all windows are forward-context free: it is known as events come which windows they "
        "join, so each worker keeps windows of its own"
    )


def without_partial(query: Query) -> Query:
    """The query without incomplete windows: rows that end long ago could not come in order."""
    return query.with_windows({label: w.without_partial() for label, w in query.windows.items()})
