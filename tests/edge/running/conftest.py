"""One process that starts all others, and trees that are cleared away after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from tests.edge.running.events import QUERY, SCHEMA, SMALL
from tests.edge.running.real_trees import RealTree, Shape
from tests.edge.running.threads import Threads, threads
from tests.edge.running.zygote import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture
def grow(tmp_path: Path, zygote: Zygote) -> Iterator[Callable[..., RealTree]]:
    """Makes trees; what still runs after the test is killed."""
    grown: list[RealTree] = []

    def plant(
        shape: Shape = SMALL,
        query: pf.Query = QUERY,
        schema: pa.Schema = SCHEMA,
        **others: Any,
    ) -> RealTree:
        folder = tmp_path / str(len(grown))
        folder.mkdir()
        grown.append(RealTree(folder, zygote, query, schema, shape, **others))
        return grown[-1]

    yield plant
    for tree in grown:
        tree.close()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Threads]:
    with threads(tmp_path) as made:
        yield made
