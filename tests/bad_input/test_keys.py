"""Keys that cannot be told apart or put in order."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import paneflow as pf
from tests.bad_input.refusing import TABLE, over, refused


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5]),
        pa.array([1.5], pa.float32()),
        pa.array([1.5]).dictionary_encode(),
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
def test_keys_that_cannot_be_told_apart(values: pa.Array, engine: str) -> None:
    type_ = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    table = pa.table({"t": [1], "k": values})
    refused(pf.InputError, over(table, engine=engine, key="k"), "'k'", str(type_), "cast")


def test_a_key_that_cannot_be_put_in_order(engine: str) -> None:
    ids = pa.array([uuid.UUID(int=5), uuid.UUID(int=6)])
    table = TABLE.append_column("id", ids)
    refused(pf.InputError, over(table, engine=engine, key="id"), "'id'", "uuid", "cast")
