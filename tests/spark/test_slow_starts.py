"""A test runs again if Spark has given up on a worker of its own, and for no other reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.slow_starts import SAID

attempts: list[Path] = []


def test_a_test_whose_worker_was_too_slow_to_start_runs_again(spark: Any, tmp_path: Path) -> None:
    attempts.append(tmp_path)
    assert len(attempts) == 2, SAID
    assert attempts[0] != attempts[1]
