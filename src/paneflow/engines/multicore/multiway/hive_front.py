"""A front whose pushing threads update windows themselves, in whatever order they come.

The thread that pushes to a source reads its events, gives keys their codes, and updates winsets.
The stream thread learns only of the times, which move the watermark, and gives out what is final.

That is right for events that cannot be behind the watermark, whatever other sources do: no source
lets it pass its own latest time less the lateness. Events further back are held, checked and fed as
in the usual front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.engines.multicore.intake.front import Added, Arrival
from paneflow.engines.multicore.multiway.source_front import AddingFront
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.slicing.ordering import is_sorted

if TYPE_CHECKING:
    from paneflow.engines.multicore.multiway.hive_units import HiveStrategy
    from paneflow.query import Query


class HiveFront(AddingFront):
    """Lets pushing threads update winsets."""

    unseen: ClassVar[bool] = True
    hive: HiveStrategy

    def __init__(
        self, query: Query, schema: pa.Schema, sources: int, updates: bool = False
    ) -> None:
        super().__init__(query, schema, sources, updates)
        self._reached = [BEFORE_ALL] * sources
        """For each source the largest time that it has shown."""

    def add(self, source: int, batch: pa.RecordBatch, places: list[int] | None) -> Added:
        batch = batch if places is None else batch.select(places)
        t = self._times(batch.column(0))
        bound = self._reached[source]
        self._reached[source] = max(bound, int(t.max()))
        if not is_sorted(t):
            bound = self._reached[source]
        if int(t.min()) < bound - self._lateness:
            return Added(batch, t, 0, 0)
        readers = self._readers.items()
        columns = {name: reader.read(batch.column(at)) for name, (at, reader) in readers}
        self.hive.update(source, self.keys.encode(batch), t, columns)
        return Added(batch, t, 0, len(t))

    def _let_in(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        every = [arrival.added for arrival in arrivals if arrival.added is not None]
        t = every[0].t if len(every) == 1 else np.concatenate([added.t for added in every])
        source = self._sources_of(arrivals)
        behind, limit = self._arrive(t, source)
        if behind is not None:
            batch = pa.concat_batches([added.batch for added in every])
            self._set_aside(arrivals, batch, t, source, behind, limit)
        end = 0
        for arrival, added in zip(arrivals, every, strict=True):
            begin, end = end, end + len(added.t)
            if added.merged:
                continue
            which = np.arange(len(added.t))
            if behind is not None:
                which = which[~behind[begin:end]]
            if len(which):
                of = source if self._single else np.full(len(which), arrival.source)
                self._held.add(added.batch.take(pa.array(which)), added.t[which], of)
