"""How far a child node has come: its sources, those that are silent, and those it has not heard."""

from __future__ import annotations

import pytest

from paneflow.engines.edge.nodes.sources import Sources
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL


def horizon(latest: int) -> int:
    return latest + 100


def test_the_slowest_source_decides() -> None:
    sources = Sources(lateness=2)
    sources.show("a", 1, 10)
    assert sources.advance(horizon) == 8
    sources.show("b", 1, 5)
    assert sources.advance(horizon) == 8, "a watermark never goes back"
    sources.show("a", 2, 30)
    assert sources.advance(horizon) == 8
    sources.show("b", 2, 20)
    assert sources.advance(horizon) == 18


def test_a_silent_source_is_waited_for_again_when_it_speaks() -> None:
    sources = Sources(lateness=0)
    sources.show("a", 1, 10)
    sources.show("b", 1, 5)
    sources.wait_no_more("b")
    assert sources.advance(horizon) == 10
    sources.show("b", 2, 12)
    sources.show("a", 2, 40)
    assert sources.advance(horizon) == 12


def test_when_all_are_silent_all_windows_close() -> None:
    sources = Sources(lateness=5)
    sources.show("a", 1, 10)
    sources.wait_no_more("a")
    assert sources.advance(horizon) == 110


@pytest.mark.parametrize("silent", [False, True])
def test_nothing_closes_before_all_expected_sources_were_heard(silent: bool) -> None:
    sources = Sources(lateness=0, least=2)
    sources.show("a", 1, 50)
    if silent:
        sources.wait_no_more("a")
    assert sources.advance(horizon) == BEFORE_ALL
    sources.show("b", 1, 20)
    assert sources.advance(horizon) == 20
    sources.close()
    assert sources.advance(horizon) == AFTER_ALL
