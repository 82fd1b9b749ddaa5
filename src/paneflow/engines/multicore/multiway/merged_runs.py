"""How a reader merges the runs that it has opened into one order.

The open tuples of each source lie in order in its ring. Time, source and position of a tuple are
packed into one word, whose numeric order is the total order, and words are sorted by their times,
some bits at a time from the lowest (a radix sort). Words begin in the order of sources and
positions, and each pass keeps the order of equal digits, so only times need sorting.

What this costs for each tuple depends on how far times spread, and not on the number of sources:
two passes for 2**20 ticks, at most five. A heap compares about twice log2(n) times for n sources,
and half of its branches are guessed wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import lean
from paneflow.engines.multicore.multiway.arena import (
    LINE,
    UNTIL,
    UNTIL_SOURCE,
    tuple_at,
)
from paneflow.merging.machine.atomics import publish

DIGIT = 10
"""Bits that a pass sorts by at most: their counters stay in the first cache."""
PLACE = 16
"""Bits for the place of a tuple among those of its source that are taken at a time."""


class Merging(NamedTuple):
    """What a reader merges with."""

    ends: Array
    """For each source the position behind the last tuple that is taken."""
    words: Array
    spare: Array
    counters: Array


class Found(NamedTuple):
    """Tuples in total order."""

    times: Array
    sources: Array
    positions: Array


def room_to_merge(sources: int, most: int) -> tuple[Merging, Found]:
    """What a reader needs to take so many tuples at a time."""
    merging = Merging(
        ends=np.zeros(sources, np.int64),
        words=np.zeros(most, np.int64),
        spare=np.zeros(most, np.int64),
        counters=np.zeros(2**DIGIT, np.int64),
    )
    return merging, Found(*(np.zeros(most, np.int64) for _ in Found._fields))


@lean
def behind(gate, source, begin, end, time):  # type: ignore[no-untyped-def]
    """The position behind the last open tuple of a source up to a time."""
    if begin < end and gate.times[tuple_at(gate, source, end - 1)] <= time:
        return end
    while begin < end:
        middle = (begin + end) >> 1
        if gate.times[tuple_at(gate, source, middle)] <= time:
            begin = middle + 1
        else:
            end = middle
    return begin


@lean
def earliest(gate, cells, until):  # type: ignore[no-untyped-def]
    """The time of the first open tuple; a later time than given if there is none before."""
    least = until + 1
    for source in range(len(gate.sources) // LINE):
        begin = gate.taken[cells + source]
        if begin < gate.opened[cells + source]:
            least = min(least, gate.times[tuple_at(gate, source, begin)])
    return least


@lean
def count_until(gate, cells, ends, time):  # type: ignore[no-untyped-def]
    """How many of the tuples before the ends there are up to a time."""
    total = 0
    for source in range(len(ends)):
        begin = gate.taken[cells + source]
        total += behind(gate, source, begin, ends[source], time) - begin
    return total


@lean
def cut(gate, cells, ends, least, until, most):  # type: ignore[no-untyped-def]
    """Move the ends back so that only the first tuples are left, as many as there is room for."""
    low, high = least, until
    while low < high:  # the first time up to which there are too many
        middle = low + ((high - low) >> 1)
        if count_until(gate, cells, ends, middle) > most:
            high = middle
        else:
            low = middle + 1
    room = most - count_until(gate, cells, ends, low - 1)
    for source in range(len(ends)):
        begin = gate.taken[cells + source]
        before = behind(gate, source, begin, ends[source], low - 1)
        some = min(room, behind(gate, source, before, ends[source], low) - before)
        ends[source] = before + some
        room -= some


@lean
def sort_words(merging, length, bits, lowest):  # type: ignore[no-untyped-def]
    """Sort words by some of their bits; whether they end up in `spare`."""
    passes = -(-bits // DIGIT)
    swapped = False
    for k in range(passes):
        digit = min(-(-bits // passes), bits - k * -(-bits // passes))
        shift = lowest + k * -(-bits // passes)
        given, sorted_ = merging.words, merging.spare
        if swapped:
            given, sorted_ = merging.spare, merging.words
        mask = (1 << digit) - 1
        for value in range(mask + 1):
            merging.counters[value] = 0
        for i in range(length):
            merging.counters[(given[i] >> shift) & mask] += 1
        before = 0
        for value in range(mask + 1):
            count = merging.counters[value]
            merging.counters[value] = before
            before += count
        for i in range(length):
            word = given[i]
            value = (word >> shift) & mask
            sorted_[merging.counters[value]] = word
            merging.counters[value] += 1
        swapped = not swapped
    return swapped


@lean
def merge_runs(gate, reader, merging, found):  # type: ignore[no-untyped-def]
    """Take the open tuples that precede all other nodes, in order; how many there were."""
    until, of = gate.readers[reader * LINE + UNTIL], gate.readers[reader * LINE + UNTIL_SOURCE]
    cells, most, ends = reader * gate.stride, len(found.times), merging.ends
    least = earliest(gate, cells, until)
    if least > until:
        return 0
    lowest = PLACE + gate.bits
    if (until - least) >> (62 - lowest):  # more than fits into a word: the rest is taken next time
        until, of = least + (1 << (62 - lowest)) - 1, len(ends)
    total, latest, runs = 0, least, 0
    for source in range(len(ends)):
        begin, end = gate.taken[cells + source], gate.opened[cells + source]
        ends[source] = behind(gate, source, begin, end, until - (source > of))
        total += ends[source] - begin
    if total > most:
        cut(gate, cells, ends, least, until, most)
    at = 0
    for source in range(len(ends)):
        begin = gate.taken[cells + source]
        if begin == ends[source]:
            continue
        runs += 1
        latest = max(latest, gate.times[tuple_at(gate, source, ends[source] - 1)])
        low = source << PLACE
        for position in range(begin, ends[source]):
            since = gate.times[tuple_at(gate, source, position)] - least
            merging.words[at] = since << lowest | low | (position - begin)
            at += 1
    bits = 0
    if runs > 1:
        while (latest - least) >> bits:
            bits += 1
    swapped = sort_words(merging, at, bits, lowest)
    words = merging.spare if swapped else merging.words
    for i in range(at):
        word = words[i]
        source = (word >> PLACE) & ((1 << gate.bits) - 1)
        found.times[i] = least + (word >> lowest)
        found.sources[i] = source
        found.positions[i] = gate.taken[cells + source] + (word & ((1 << PLACE) - 1))
    for source in range(len(ends)):
        publish(gate.taken, cells + source, ends[source])
    return at
