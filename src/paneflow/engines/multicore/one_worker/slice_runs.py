"""The slices of a stream, in runs: each by columns, ordered by (key, start).

Slices of a push are a run of their own; short runs are joined with their neighbours, so that there
are few. Slices that two pushes share are combined, the earlier first, so that combines which need
the order of events have it. Slices themselves never change, so a copy is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from paneflow.aggregates._functions.roles import merging
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.engines.multicore.tuning import tuning
from paneflow.merging import MERGERS
from paneflow.slicing.ordering import stable_order


@dataclass(frozen=True, eq=False)
class Block:
    """Slices by columns, ordered by (key, start)."""

    key: Array
    start: Array
    counts: dict[tuple[str, ...], Array]
    """For each set of columns, how many events had a value in all of them."""
    partials: dict[Operator, Partials]

    def __len__(self) -> int:
        return len(self.key)

    def without(self, key: Array, start: Array) -> Block:
        """The slices but those with one of these keys and one of these starts."""
        return self.at(~(np.isin(self.key, key) & np.isin(self.start, start)))

    def at(self, chosen: Array) -> Block:
        """Some of the slices, by position or by mask."""
        return Block(
            self.key[chosen],
            self.start[chosen],
            {columns: n[chosen] for columns, n in self.counts.items()},
            {op: tuple(c[chosen] for c in parts) for op, parts in self.partials.items()},
        )


class SliceRun(NamedTuple):
    """Slices of a few pushes, and when the first and the last of them begin."""

    block: Block
    earliest: int
    latest: int

    @classmethod
    def of(cls, block: Block) -> SliceRun:
        """A run of some slices."""
        return cls(block, int(block.start.min()), int(block.start.max()))


class SliceRuns:
    """Slices, as they come."""

    def __init__(self) -> None:
        self._runs: list[SliceRun] = []
        self._fresh: list[Block] = []
        self._loose = 0

    def __len__(self) -> int:
        return self._loose + sum(len(run.block) for run in self._runs)

    def copy(self) -> SliceRuns:
        """As they are now."""
        other = SliceRuns()
        other._runs, other._fresh, other._loose = list(self._runs), list(self._fresh), self._loose
        return other

    def put(self, block: Block) -> None:
        """Add the slices of a push."""
        self._fresh.append(block)
        self._loose += len(block)
        if self._loose > tuning.loose_slices:
            self._join()

    def drop(self, key: Array, start: Array) -> None:
        """Forget slices with one of these keys and one of these starts."""
        blocks = [*(run.block for run in self._runs), *self._fresh]
        self._runs = []
        self._fresh = [block.without(key, start) for block in blocks]
        self._loose = sum(map(len, self._fresh))

    def since(self, first: int) -> Block | None:
        """The slices from a time on in order, each once, and perhaps some before it."""
        self._join()
        parts = []
        for run in self._runs:
            if run.latest < first:
                continue
            later = run.block.start >= first if run.earliest < first else None
            if later is not None and 2 * np.count_nonzero(later) < len(later):
                parts.append(run.block.at(later))
            else:
                parts.append(run.block)
        if not parts:
            return None
        block = parts[0] if len(parts) == 1 else once(together(parts))
        if len(parts) == len(self._runs) and all(
            part is run.block for part, run in zip(parts, self._runs, strict=True)
        ):
            self._runs = [SliceRun.of(block)]
        return block

    def forget(self, first: int) -> None:
        """Drop slices that begin before a time; some of them may stay for a while."""
        runs = []
        for run in self._runs:
            if run.earliest >= first:
                runs.append(run)
            elif run.latest >= first:
                later = run.block.start >= first
                few = 2 * np.count_nonzero(later) < len(later)
                runs.append(SliceRun.of(run.block.at(later)) if few else run)
        self._runs = runs

    def _join(self) -> None:
        """Let what is fresh be a run, and let there be few runs."""
        if self._loose:
            fresh = self._fresh[0] if len(self._fresh) == 1 else once(together(self._fresh))
            self._runs.append(SliceRun.of(fresh))
        self._fresh, self._loose = [], 0
        while len(self._runs) > 1:
            before, last = self._runs[-2:]
            n = len(last.block)
            if len(before.block) >= min(2 * n, tuning.longest_run - n):
                return
            self._runs[-2:] = [SliceRun.of(once(together([before.block, last.block])))]


def once(block: Block) -> Block:
    """Slices in order; those of one key and start are combined, the earlier first."""
    order = stable_order([block.key, block.start], len(block))
    if order is not None:
        block = block.at(order)
    again = np.ones(len(block), np.bool_)
    again[1:] = (block.key[1:] != block.key[:-1]) | (block.start[1:] != block.start[:-1])
    lo = np.flatnonzero(again)
    if len(lo) == len(block):
        return block
    hi = np.append(lo[1:], len(block))
    return Block(
        block.key[lo],
        block.start[lo],
        {columns: np.add.reduceat(n, lo) for columns, n in block.counts.items()},
        {op: merge("recalculate", op, parts, lo, hi) for op, parts in block.partials.items()},
    )


def merge(name: str, operator: Operator, partials: Partials, lo: Array, hi: Array) -> Partials:
    """The partials of some ranges, merged by an algorithm."""
    with merging(operator, partials, lo, hi):
        return MERGERS[name](operator, partials).merge(lo, hi)


def together(blocks: list[Block]) -> Block:
    """Blocks one behind the other."""
    counts = {
        columns: np.concatenate([b.counts[columns] for b in blocks]) for columns in blocks[0].counts
    }
    partials = {
        op: tuple(
            np.concatenate(column) for column in zip(*(b.partials[op] for b in blocks), strict=True)
        )
        for op in blocks[0].partials
    }
    key = np.concatenate([b.key for b in blocks])
    return Block(key, np.concatenate([b.start for b in blocks]), counts, partials)


def empty_block(operators: Iterable[Operator], counted: Iterable[tuple[str, ...]]) -> Block:
    """No slices."""
    none = np.empty(0, np.int64)
    return Block(none, none, dict.fromkeys(counted, none), {op: op.empty(0) for op in operators})
