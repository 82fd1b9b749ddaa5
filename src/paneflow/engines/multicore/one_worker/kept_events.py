"""Events that are kept beside their slices, should a straggler have to be put among them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.columns import Column


class Read(NamedTuple):
    """Events as they are folded."""

    key: Array
    t: Array
    moments: Array
    columns: dict[str, Column]

    def at(self, chosen: Array) -> Read:
        """Some of the events, by position or by mask."""
        columns = {name: column.part(chosen) for name, column in self.columns.items()}
        return Read(self.key[chosen], self.t[chosen], self.moments[chosen], columns)


def keep(kept: list[Read], came: Read) -> None:
    """Keep some more, together with those before them while these are few."""
    kept.append(came)
    while len(kept) > 1:
        before, last = kept[-2:]
        if len(before.t) >= 2 * len(last.t) or len(before.t) + len(last.t) > tuning.longest_run:
            return
        kept[-2:] = [joined([before, last])]


def joined(several: list[Read]) -> Read:
    """Events one behind the other."""
    columns = {}
    for name, first in several[0].columns.items():
        parts = [each.columns[name] for each in several]
        valid = None
        if any(part.valid is not None for part in parts):
            valid = np.concatenate(
                [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
            )
        columns[name] = replace(
            first, values=np.concatenate([part.values for part in parts]), valid=valid
        )
    return Read(
        np.concatenate([each.key for each in several]),
        np.concatenate([each.t for each in several]),
        np.concatenate([each.moments for each in several]),
        columns,
    )
