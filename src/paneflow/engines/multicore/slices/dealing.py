"""A batch of events is dealt out by key: what any worker does, without the interpreter lock.

The keys of a stream are divided into *shards*, by the last bits of their codes. Dealing only says
which events belong to which shard; nothing is copied or sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.threads.short_loops import places
from paneflow.engines.multicore.tuning import tuning


class Sharding(NamedTuple):
    """How keys are divided: the shard of a code, and its code within the shard."""

    bits: int

    @classmethod
    def among(cls, workers: int) -> Sharding:
        """Enough shards for a number of workers."""
        return cls((workers - 1).bit_length())

    @property
    def shards(self) -> int:
        return 1 << self.bits

    def of(self, codes: Array) -> Array:
        """The shards of codes."""
        shards: Array = codes & (self.shards - 1)
        return shards

    def inner(self, codes: Array) -> Array:
        """The codes within their shards, which are dense in each of them."""
        return codes >> self.bits

    def outer(self, codes: Array, shard: int) -> Array:
        """The codes of keys among all, from those within a shard."""
        return (codes << self.bits) | shard


class Dealt(NamedTuple):
    """Events, and which of them belong to which shard."""

    events: Batch
    ends: Array
    """How many events there are up to the end of each push."""
    which: list[Array] | None
    """For each shard the positions of its events, in order.

    None if all have the same key, unless there are so few that it makes no difference."""

    @property
    def alike(self) -> bool:
        """Whether it was seen that all events have the same key, and so one shard has them all."""
        return self.which is None

    def of(self, shard: int, sharding: Sharding) -> Array:
        """The positions of a shard's events."""
        if self.which is not None:
            return self.which[shard]
        return places(len(self.events) if shard == sharding.of(self.events.key[0]) else 0)


def deal(events: Batch, ends: Array, sharding: Sharding) -> Dealt:
    """Deal events out."""
    n = len(events)
    if n > tuning.deal_here and _alike(events.key):
        return Dealt(events, ends, None)
    rows = np.empty((sharding.shards, n), np.int64)
    dealt = np.zeros(sharding.shards, np.int64)
    _deal(events.key, rows, dealt)
    which = [row[:m] for row, m in zip(rows, dealt.tolist(), strict=True)]
    return Dealt(events, ends, which)


@compiled
def _alike(key):  # type: ignore[no-untyped-def]
    found = 0
    while found < len(key) and key[found] == key[0]:
        found += 1
    return found == len(key)


@compiled
def _deal(key, which, dealt):  # type: ignore[no-untyped-def]
    mask = len(dealt) - 1
    if mask == 1:
        # The place of an event is written in both rows, and counts in one: no branch to guess.
        odd = 0
        for i in range(len(key)):
            which[0, i - odd] = i
            which[1, odd] = i
            odd += key[i] & 1
        dealt[0] = len(key) - odd
        dealt[1] = odd
        return
    for i in range(len(key)):
        shard = key[i] & mask
        which[shard, dealt[shard]] = i
        dealt[shard] += 1
