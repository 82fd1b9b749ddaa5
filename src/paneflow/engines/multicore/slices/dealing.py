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
    which: list[Array]
    """For each shard the positions of its events, in order."""


def deal(events: Batch, ends: Array, sharding: Sharding) -> Dealt:
    """Deal events out."""
    n = len(events)
    if int(events.key.max(initial=0)) == 0:  # a single key, as in streams without key columns
        return Dealt(events, ends, [places(n), *[places(0)] * (sharding.shards - 1)])
    which = np.empty((sharding.shards, n), np.int64)
    dealt = np.zeros(sharding.shards, np.int64)
    _deal(events.key, which, dealt)
    return Dealt(events, ends, [row[:m] for row, m in zip(which, dealt.tolist(), strict=True)])


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
