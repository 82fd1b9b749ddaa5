"""Which PU a window belongs to: whoever asks, the answer is the same, and shares are even."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from paneflow.engines.multicore.topologies.handshake import _mine, owner

KEYS, WINDOWS = 50, 40

owner_of = numba.njit(lambda window, key, workers: owner(window, key, workers))


@pytest.mark.parametrize("workers", range(1, 10))
@pytest.mark.parametrize("first", [-(2**62), -7, 0, 10**12])
def test_of_all_windows_each_pu_lists_those_that_their_hashes_give_it(
    workers: int, first: int
) -> None:
    key = np.arange(KEYS)
    # One event of each key, in windows with the numbers from `first` on.
    ticks = np.full(KEYS, first + WINDOWS - 1)
    counted = []
    for rank in range(workers):
        which, numbers = (np.empty(KEYS * WINDOWS, np.int64) for _ in range(2))
        span = (WINDOWS, 1, 0, -(2**63) + 1)
        found, hashed = _mine(1, key, ticks, 0, KEYS, span, rank, workers, which, numbers)
        expected = [
            (k, window)
            for k in range(KEYS)
            for window in range(first, first + WINDOWS)
            if owner_of(window, k, workers) == rank
        ]
        listed = list(zip(which[:found].tolist(), numbers[:found].tolist(), strict=True))
        assert listed == expected
        assert hashed == KEYS * WINDOWS
        counted.append(found)
    assert max(counted) < 1.2 * min(counted)
