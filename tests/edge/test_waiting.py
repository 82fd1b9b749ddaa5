"""Rows that wait at a node."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paneflow.engines.edge.parts.waiting import Waiting, split

TABLES = [pa.table({"x": [1, 2, 3]}), pa.table({"x": [4, 5]}), pa.table({"x": [6]})]


@pytest.mark.parametrize("chosen", ["111111", "000000", "000111", "110000", "101010", "001111"])
def test_chosen_rows_stay_and_the_others_go(chosen: str) -> None:
    wanted = np.array([c == "1" for c in chosen])
    kept, gone = split(pa.concat_tables(TABLES), wanted)
    assert kept["x"].to_pylist() == [k + 1 for k in range(6) if wanted[k]]
    assert gone["x"].to_pylist() == [k + 1 for k in range(6) if not wanted[k]]
    waiting = Waiting(TABLES[0].schema)
    for table in TABLES:
        waiting.add("hall", table)
    assert waiting.keep(wanted)["x"].to_pylist() == gone["x"].to_pylist()
    assert waiting.all()["x"].to_pylist() == kept["x"].to_pylist()


def test_what_came_together_is_not_copied() -> None:
    kept, gone = split(pa.concat_tables(TABLES), np.array([False] * 3 + [True] * 3))
    came = [table["x"].chunk(0).buffers()[1].address for table in TABLES]
    assert [chunk.buffers()[1].address for chunk in gone["x"].chunks] == came[:1]
    assert [chunk.buffers()[1].address for chunk in kept["x"].chunks] == came[1:]
