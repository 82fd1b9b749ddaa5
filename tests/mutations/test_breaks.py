"""The breaks fit the code as it is, so that trying them out does not begin with repairing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.breaks import BREAKS, ROOMS, Break

HERE = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
def test_a_break_changes_the_file_it_names_in_one_place(broken: Break) -> None:
    whole = (HERE / broken.file).read_text()
    assert broken.applied(whole) != whole


def test_the_tests_that_should_notice_a_break_exist() -> None:
    named = " ".join([*(broken.tests for broken in BREAKS), *ROOMS.values()]).split()
    paths = {word.split("::")[0] for word in named if word.startswith("tests/")}
    assert [path for path in paths if not (HERE / path).exists()] == []
