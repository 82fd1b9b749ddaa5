"""Tests of Spark outlast a busy machine.

Spark gives a Python worker ten seconds to start, and fails the job if it takes longer. No setting
changes that, and next to other work ten seconds are not always enough. A test that fails for this
reason, and for no other, runs again.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

SAID = "Python worker failed to connect back"
ATTEMPTS = 10


def run_again_after_slow_starts(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    """Run a test, as often as its workers have been too slow to start."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(ATTEMPTS):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed and SAID in report.longreprtext for report in reports):
            break
        item._initrequest()  # fixtures are made anew, tmp_path among them
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
