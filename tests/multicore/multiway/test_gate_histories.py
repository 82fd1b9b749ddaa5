"""What threads see of a T-Gate can be explained by doing one operation after another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from paneflow.engines.multicore.multiway import arena, gate_reading, gate_writing, merged_runs
from tests.multicore.multiway.gate_model import GateModel
from tests.multicore.multiway.linearizability import from_moments, is_linearizable
from tests.multicore.multiway.pausing import with_pauses
from tests.multicore.multiway.recorded import history, perform


def check(seeds: range, performing: Any = perform) -> int:
    """Check histories; how many pairs of operations of different threads overlapped."""
    overlapping = 0
    with ThreadPoolExecutor(5) as pool:
        for seed in seeds:
            sources, readers, threads = history(seed, pool, performing)
            initial = GateModel.fresh(sources, readers)
            assert is_linearizable(initial, from_moments(threads)), (seed, threads)
            every = [(timed, k) for k, thread in enumerate(threads) for timed in thread]
            overlapping += sum(
                a.begun < b.begun < a.ended for a, k in every for b, of in every if k != of
            )
    return overlapping


def test_histories_are_linearizable() -> None:
    check(range(400))


@pytest.mark.exhaustive
def test_many_histories_are_linearizable() -> None:
    check(range(12_000))


@pytest.mark.exhaustive
def test_many_histories_of_threads_that_meet_are_linearizable() -> None:
    modules = (arena, merged_runs, gate_writing, gate_reading)
    assert check(range(12_000), with_pauses(perform, modules)) > 12_000
