"""The checker of histories accepts what can be explained, and nothing else."""

from __future__ import annotations

from tests.multicore.multiway.gate_model import (
    Advance,
    Close,
    GateModel,
    Idle,
    Insert,
    Join,
    Operation,
    Take,
)
from tests.multicore.multiway.linearizability import Timed, from_moments, is_linearizable


def explained(*threads: list[tuple[Operation, object, int, int]], sources: int = 2) -> bool:
    """Whether a history with one reader can be explained; moments are given for each operation."""
    timed = [
        [Timed(((operation, result),), begun, ended) for operation, result, begun, ended in thread]
        for thread in threads
    ]
    return is_linearizable(GateModel.fresh(sources, 1), from_moments(timed))


def test_one_operation_after_another() -> None:
    #  source 0  ─ 5 ─
    #  source 1        ─ 7 ─
    #  reader               ─ 5 ─
    assert explained(
        [(Insert(0, 5), None, 0, 1)],
        [(Insert(1, 7), None, 2, 3)],
        [(Take(0), [(5, 0, 0)], 4, 5)],
    )


def test_what_is_ready_must_be_taken() -> None:
    assert not explained(
        [(Insert(0, 5), None, 0, 1)],
        [(Insert(1, 7), None, 2, 3)],
        [(Take(0), [], 4, 5)],
    )


def test_what_overlaps_may_come_first_or_last() -> None:
    #  source 0  ─ 5 ─
    #  source 1        ──── 7 ────
    #  reader             ─ ? ─
    for seen in ([], [(5, 0, 0)]):
        assert explained(
            [(Insert(0, 5), None, 0, 1)],
            [(Insert(1, 7), None, 2, 5)],
            [(Take(0), seen, 3, 4)],
        )


def test_what_is_not_ready_must_not_be_taken() -> None:
    assert not explained(
        [(Insert(0, 5), None, 0, 1)],
        [(Insert(1, 7), None, 2, 3)],
        [(Take(0), [(5, 0, 0), (7, 1, 0)], 4, 5)],
    )


def test_a_tuple_is_taken_once() -> None:
    assert not explained(
        [(Insert(0, 5), None, 0, 1)],
        [(Insert(1, 7), None, 0, 1)],
        [(Take(0), [(5, 0, 0)], 2, 3), (Take(0), [(5, 0, 0)], 4, 5)],
    )


def test_a_tuple_that_was_not_inserted_yet_cannot_be_taken() -> None:
    assert not explained(
        [(Insert(0, 5), None, 4, 5)],
        [(Insert(1, 7), None, 0, 1)],
        [(Take(0), [(5, 0, 0)], 2, 3)],
    )


def test_a_tie_waits_for_the_source_that_comes_first() -> None:
    inserted = [(Insert(0, 5), None, 0, 1)], [(Insert(1, 5), None, 0, 1)]
    assert explained(*inserted, [(Take(0), [(5, 0, 0)], 2, 3)])
    assert not explained(*inserted, [(Take(0), [(5, 0, 0), (5, 1, 0)], 2, 3)])


def test_two_takes_must_agree_on_one_order() -> None:
    # The first one has seen source 1 at 9, so the second cannot come from before that.
    history = [(Insert(0, 5), None, 0, 1)], [(Insert(1, 9), None, 2, 20)]
    assert explained(*history, [(Take(0), [], 3, 4), (Take(0), [(5, 0, 0)], 5, 6)])
    assert not explained(*history, [(Take(0), [(5, 0, 0)], 3, 4)], [(Take(0), [(5, 0, 0)], 5, 6)])


def test_the_operations_of_a_batch_keep_their_order() -> None:
    batch = Timed(((Insert(0, 5), None), (Insert(0, 8), None)), 0, 9)
    other = Timed(((Insert(1, 6), None),), 0, 1)

    def seen(*found: tuple[int, int, int]) -> bool:
        threads = [[batch], [other], [Timed(((Take(0), found),), 3, 4)]]
        return is_linearizable(GateModel.fresh(2, 1), from_moments(threads))

    assert seen()
    assert seen((5, 0, 0))
    assert seen((5, 0, 0), (6, 1, 0))
    assert not seen((6, 1, 0))


def test_a_source_joins_behind_what_was_taken() -> None:
    def joined(floor: int | None) -> bool:
        return explained(
            [(Insert(0, 5), None, 0, 1)],
            [(Idle(1), None, 0, 1), (Join(1), floor, 4, 5)],
            [(Take(0), [(5, 0, 0)], 2, 3)],
        )

    assert joined(5)
    assert not joined(4)
    assert not joined(None)
    assert not joined(7)  # the limit has never been there


def test_closed_and_advanced_sources_hold_nothing_back() -> None:
    assert explained(
        [(Insert(0, 5), None, 0, 1)], [(Close(1), None, 2, 3)], [(Take(0), [(5, 0, 0)], 4, 5)]
    )
    assert explained(
        [(Insert(0, 5), None, 0, 1)], [(Advance(1, 5), None, 2, 3)], [(Take(0), [(5, 0, 0)], 4, 5)]
    )
    assert not explained(
        [(Insert(0, 5), None, 0, 1)], [(Advance(1, 4), None, 2, 3)], [(Take(0), [(5, 0, 0)], 4, 5)]
    )
