"""Slices that know which chunk of a stream's state they are stored in.

A chunk is what one batch brought. It is written once and removed when no open window needs any
of it, so a batch writes only what is new, not everything that is open.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

CHUNK = "paneflow:chunk"
MOST_CHUNKS = 32
"""Chunks beyond this number are joined into one, so that reading them back stays fast."""


def numbered(slices: pa.Table, chunk: int) -> pa.Table:
    """Slices of one chunk."""
    return slices.append_column(CHUNK, pa.array(np.full(slices.num_rows, chunk, np.int64)))


def joined(chunks: Iterable[tuple[int, pa.Table]], layout: pa.Schema) -> pa.Table:
    """All chunks that are stored, oldest first."""
    parts = [numbered(slices, chunk) for chunk, slices in sorted(chunks, key=lambda c: c[0])]
    return pa.concat_tables([numbered(layout.empty_table(), 0), *parts])


def stored_after(kept: pa.Table, newest: int) -> tuple[pa.Table, set[int], pa.Table | None]:
    """The slices, the chunks that stay, and what is to be written as the newest chunk, if any."""
    chunk = kept.column(CHUNK).to_numpy()
    alive = set(np.unique(chunk).tolist())
    if len(alive) > MOST_CHUNKS:
        whole = kept.drop_columns([CHUNK]).combine_chunks()
        return numbered(whole, newest), {newest}, whole
    if newest not in alive:
        return kept, alive, None
    return kept, alive, kept.filter(pa.array(chunk == newest)).drop_columns([CHUNK])
