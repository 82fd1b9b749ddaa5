"""When a source counts as silent, and what arrives in one turn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from paneflow.engines.edge.inputs.contract import Arrived
from paneflow.engines.edge.inputs.files import FileInput
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import Cut, Ended
from paneflow.engines.edge.running.cuts import MOST, SMALL, Cutter
from paneflow.engines.edge.running.intake import Intake
from tests.edge.running.events import QUERY, SCHEMA, events


@pytest.fixture
def cutter() -> Cutter:
    return Cutter(Child("a", Question(QUERY, SCHEMA)), SCHEMA, "t")


def intake(folder: Path, cutter: Cutter) -> Intake:
    """An input whose source is known from the log, and of which nothing has come since."""
    given = FileInput("files", folder, SCHEMA, "t", follow=True)
    return Intake([given], cutter, {f"files/{folder.name}": 0}, idle=30.0, now=0.0)


def test_a_source_is_silent_once_until_it_is_heard_again(tmp_path: Path, cutter: Cutter) -> None:
    made = intake(tmp_path, cutter)
    assert made.silent(29.0) == []
    assert made.silent(31.0) == [f"files/{tmp_path.name}"]
    assert made.silent(90.0) == []


def test_time_in_which_nothing_was_read_does_not_count(tmp_path: Path, cutter: Cutter) -> None:
    made = intake(tmp_path, cutter)
    made.excuse(25.0)
    assert made.silent(54.0) == []
    assert made.silent(56.0) != []


def test_small_batches_are_cut_once_and_keep_their_positions(cutter: Cutter) -> None:
    parts = [
        Arrived("x", 1, events(0, 0, 5)),
        Arrived("y", 7, events(1, 0, 3)),
        Arrived("x", 2, events(0, 5, 9)),
    ]
    first, second = cutter.records(parts)
    assert isinstance(first, Cut)
    assert isinstance(second, Cut)
    assert (first.source, first.position, first.latest, first.events) == ("x", 2, 8, 12)
    assert (second.source, second.position, second.latest, second.events) == ("y", 7, 2, 0)
    assert sum(first.tables["slices"]["rows"].to_pylist()) == 12
    assert second.tables["slices"].num_rows == 0


def test_batches_of_many_slices_are_cut_together(cutter: Cutter) -> None:
    whole = pa.concat_tables([events(k, 0, 2_000) for k in range(SMALL // 2_000 + 1)])
    few = whole.set_column(0, "t", pa.array([1] * whole.num_rows, whole.schema.field("t").type))
    each = whole.num_rows

    def cut(positions: range, batch: pa.Table) -> list[tuple[int, int]]:
        records = cutter.records(Arrived("x", k, batch) for k in positions)
        return [(r.position, r.events) for r in records if isinstance(r, Cut)]

    assert cut(range(1, 4), whole) == [(1, each), (3, 2 * each)]
    assert cut(range(4, 6), few) == [(5, 2 * each)]
    assert cut(range(6, 8), few) == [(6, each), (7, each)]
    assert cut(range(8, 9), whole) == [(8, each)]
    most = MOST // each
    assert cut(range(9, 10 + most), whole) == [(8 + most, most * each), (9 + most, each)]


def test_large_batches_and_ends_stand_alone(cutter: Cutter) -> None:
    large = pa.concat_tables([events(0, 0, SMALL + 1)])
    parts = [
        Arrived("x", 1, events(0, 0, 5)),
        Arrived("y", 1, large),
        Arrived("x", 2, None, ended=True),
    ]
    records = list(cutter.records(parts))
    assert [type(record) for record in records] == [Cut, Cut, Cut, Ended]
    assert [record.source for record in records] == ["x", "y", "x", "x"]
