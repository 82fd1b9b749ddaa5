"""Log lines of a node, for machines and for people."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime

import pytest

from paneflow.engines.edge.watching.logs import JsonLines, TextLines, log_to

LOG = logging.getLogger("paneflow.some.module")


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves the logger as it was."""
    log = logging.getLogger("paneflow")
    handlers, level = log.handlers.copy(), log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level)


def test_a_line_is_json_with_what_belongs_to_the_event() -> None:
    stream = io.StringIO()
    log_to(stream, "street")
    LOG.warning("a %s was refused", "stranger", extra={"fields": {"address": "::1", "size": 7}})
    LOG.info("two\nlines")
    LOG.debug("not shown")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    assert first == {
        "level": "warning",
        "node": "street",
        "event": "a stranger was refused",
        "address": "::1",
        "size": 7,
    }
    assert second["event"] == "two\nlines"


def test_fields_cannot_replace_what_every_line_has() -> None:
    stream = io.StringIO()
    log_to(stream, "street")
    LOG.warning("it happened", extra={"fields": {"node": "another", "level": 5, "why": {1, 2}}})
    line = json.loads(stream.getvalue())
    assert (line["node"], line["level"], line["why"]) == ("street", "warning", "{1, 2}")


def test_an_unexpected_error_keeps_its_trace_in_one_line_of_json() -> None:
    stream = io.StringIO()
    log_to(stream, "street")
    try:
        raise ValueError("five")
    except ValueError:
        LOG.exception("it broke")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["trace"].endswith("ValueError: five")


def test_a_person_gets_text_with_colours() -> None:
    stream = Terminal()
    log_to(stream, "street")
    LOG.warning("a stranger\nwas refused", extra={"fields": {"address": "::1", "why": "no key"}})
    LOG.info("all is well")
    first, second = stream.getvalue().splitlines()
    assert first.endswith('street: a stranger was refused  address=::1  why="no key"')
    assert "\033[33mwarning" in first
    assert second.endswith("info    street: all is well")
    assert "\033" not in second


def test_the_form_can_be_chosen() -> None:
    stream, terminal = io.StringIO(), Terminal()
    assert isinstance(log_to(stream, "a", as_json=False).formatter, TextLines)
    assert isinstance(log_to(terminal, "a", as_json=True).formatter, JsonLines)
    LOG.error("it broke")
    assert stream.getvalue().endswith("error   a: it broke\n")
    assert "\033" not in stream.getvalue()
    assert json.loads(terminal.getvalue())["event"] == "it broke"
