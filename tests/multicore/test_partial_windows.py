"""Streams have no end at which an incomplete window could be given out."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A
from paneflow.windows import CLOSE_AFTER, KEEP, OPEN, Custom, WindowClass

COUNT = {"n": A.count()}


def test_streams_pass_over_partial_however_a_custom_window_states_it() -> None:
    @dataclass(frozen=True)
    class Marked(Custom):
        window_class = WindowClass.FCF
        columns = ("b",)
        initial = (0,)

        @property
        def partial(self) -> bool:
            return True

        @staticmethod
        def step(state: tuple[int, ...], t: int, b: int) -> tuple[tuple[int, ...], int]:
            return (1,), (OPEN if state[0] == 0 else KEEP) + (CLOSE_AFTER if b else KEEP)

    table = pa.table({"t": [1, 2, 3], "b": [False, True, False]})
    with pf.Query(Marked(), COUNT, time="t").open() as stream:
        stream.push(table)
        stream.finish()
        assert [row["n"] for rows in stream.results() for row in rows.to_pylist()] == [2]
