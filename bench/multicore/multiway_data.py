"""The twelve queries of table 2, and inputs for them.

Table 2 of Gulisano et al., "Efficient data streaming multiway aggregation through concurrent
algorithmic designs and new abstract data types". Their readings of smart meters and comments on
songs are not public; here both are drawn at random: 243 meters, and 40,000 songs with comments of
which one in twenty has a mail address, and one in twenty an IP address.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.slicing.columns import Column

MAIL = r"[a-z0-9._]+@[a-z0-9]+\.[a-z]{2,}"
ADDRESS = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
METERS, SONGS = 243, 40_000
RATE = 1000
"""Events of an input in one unit of time."""
KINDS = {"v": Kind.FLOAT}


@dataclass(frozen=True)
class Asked:
    """One line of table 2."""

    name: str
    keys: int
    size: int
    slide: int
    aggregate: A.Aggregate
    pattern: str | None = None
    """Only comments that match it count."""

    @property
    def ordered(self) -> bool:
        """Whether the result depends on the order of events."""
        return self.name.endswith("OS")

    @property
    def query(self) -> pf.Query:
        windows = W.sliding(self.size, self.slide)
        return pf.Query(windows, {"result": self.aggregate}, key="k", time="t")


FIRST, COUNT, MATCHING, MEAN = A.first("v"), A.count(), A.count("v"), A.mean("v")
TABLE = (
    Asked("k-OS", METERS, 30, 3, FIRST),
    Asked("K-OS", SONGS, 30, 3, FIRST),
    Asked("w-OS", METERS, 20, 2, FIRST),
    Asked("W-OS", METERS, 40, 2, FIRST),
    Asked("f-OS", SONGS, 20, 2, FIRST, MAIL),
    Asked("F-OS", SONGS, 20, 2, FIRST, f"{MAIL}|{ADDRESS}"),
    Asked("k-OI", METERS, 30, 3, COUNT),
    Asked("K-OI", SONGS, 30, 3, COUNT),
    Asked("w-OI", METERS, 20, 2, MEAN),
    Asked("W-OI", METERS, 40, 2, MEAN),
    Asked("f-OI", SONGS, 20, 2, MATCHING, MAIL),
    Asked("F-OI", SONGS, 20, 2, MATCHING, f"{MAIL}|{ADDRESS}"),
)


class Given:
    """Inputs of equal length, each sorted by time."""

    def __init__(self, asked: Asked, inputs: int, events: int) -> None:
        rng = np.random.default_rng(2)
        self.length = events // inputs
        shape = inputs, self.length
        self.key = rng.integers(0, asked.keys, shape)
        self.t = np.broadcast_to(np.arange(self.length) // RATE, shape)
        self.v = rng.random(shape)
        self._pattern = asked.pattern
        self._texts = None
        if asked.pattern is not None:
            self._texts = _comments(rng).take(pa.array(rng.integers(0, 5000, inputs * self.length)))
        self.question = Question(asked.query, KINDS)

    def part(self, source: int, begin: int, end: int) -> Inputs:
        """Consecutive events of one input."""
        place = source * self.length
        texts = None if self._texts is None else self._texts.slice(place + begin, end - begin)
        part = source, slice(begin, end)
        return self._read(self.key[part], self.t[part], self.v[part], texts)

    def chosen(self, source: Array, position: Array) -> Inputs:
        """Events of several inputs."""
        texts = None
        if self._texts is not None:
            texts = self._texts.take(pa.array(source * self.length + position))
        part = source, position
        return self._read(self.key[part], self.t[part], self.v[part], texts)

    def _read(self, key: Array, t: Array, v: Array, texts: pa.Array | None) -> Inputs:
        """The function of the query is applied here, by the thread that updates windows."""
        valid = None
        if texts is not None:
            matches = pc.match_substring_regex(texts, self._pattern)
            valid = matches.to_numpy(zero_copy_only=False)
        columns = {"v": Column("v", pa.float64(), Kind.FLOAT, v, valid)}
        return Inputs(self.question, key, t, t, columns)


def _comments(rng: np.random.Generator) -> pa.Array:
    words = ["nice", "track", "love", "this", "drop", "at", "the", "end", "again", "one", "more"]
    texts = []
    for k in range(5000):
        said = [words[i] for i in rng.integers(0, len(words), int(rng.integers(3, 15)))]
        if k % 20 == 0:
            said.insert(len(said) // 2, f"user{k}@mail{k % 7}.com")
        if k % 20 == 1:
            said.insert(len(said) // 2, f"10.{k % 256}.3.{k % 99}")
        texts.append(" ".join(said))
    return pa.array(texts)
