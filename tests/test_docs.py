"""The pages people read are true: their code runs, their links lead somewhere, they read well."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from paneflow.cli.app import app
from paneflow.edge import read_tree
from tests.pages import PAGES, ROOT, blocks, needs_spark, run

LANGUAGES = {"", "python", "python spark", "sh", "text", "toml"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@every_page
def test_every_block_is_of_a_kind_that_is_checked(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    shown = [block for block in blocks(page) if block.language == "text"]
    assert all(block.follows for block in shown), "a text block shows what the one before prints"


@pytest.mark.parametrize("page", [p for p in PAGES if not needs_spark(p)], ids=lambda p: p.name)
def test_the_code_of_a_page_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line, shown, printed in run(page):
        assert printed == shown, f"{page.name}, line {line}"


def commands(page: Path) -> set[str]:
    """The commands in `sh` blocks, and those that a sentence quotes."""
    lines = [line for b in blocks(page) if b.language == "sh" for line in b.text.splitlines()]
    quoted = re.findall(r"`((?:make|python|pip|\.venv/bin/\w+) [^`]+)`", text_of(page))
    return {line.split(" #")[0].strip() for line in [*lines, *quoted]} - {""}


@every_page
def test_commands_are_those_of_this_repository(page: Path) -> None:
    unknown = [command for command in sorted(commands(page)) if not known(command.split())]
    assert not unknown


def is_understood(words: list[str]) -> bool:
    """Whether `paneflow` has such a command, with these arguments."""
    command, names = typer.main.get_command(app), [*words]
    while isinstance(command, TyperGroup):
        command = command.commands.get(names.pop(0)) if names else None
    if command is None:
        return False
    command.make_context("paneflow", names)  # raises an error if they make no sense
    return True


def known(words: list[str]) -> bool:
    """Whether a command would find what it names."""
    match words:
        case ["cd", "paneflow"] | ["git", "clone", *_] | ["pip", "uninstall", "paneflow"]:
            return True
        case ["scp", given, to]:
            return ":" in given or ":" in to
        case ["paneflow", *rest]:
            return is_understood(rest)
        case ["make", *rest]:
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            return all("=" in word or word in targets for word in rest)
        case ["pip" | ".venv/bin/pip", "install", what]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            asked = re.fullmatch(r'"?(?:\.|paneflow)(?:\[([a-z,]+)\])?"?', what)
            extras = project["optional-dependencies"]
            return bool(asked) and all(e in extras for e in (asked[1] or "").split(",") if e)
        case [python, "-m", module, *_] if Path(python).name == "python":
            return importlib.util.find_spec(module) is not None
        case [python, file] if Path(python).name == "python":
            return (ROOT / file).is_file()
        case [tool, *_]:
            return tool.startswith(".venv/bin/") and (ROOT / tool).is_file()
    return False


@every_page
def test_trees_are_described_without_a_mistake(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(b for b in blocks(page) if b.language == "toml"):
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text)
        assert read_tree(file).nodes


@every_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}


@every_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    places = ("src", "bench", "tests", "examples")
    files = [f"/{f.relative_to(ROOT)}" for p in places for f in (ROOT / p).rglob("*.py")]
    named = set(re.findall(r"`([\w/.]+\.py)`", page.read_text()))
    assert not sorted(n for n in named if not any(f.endswith(f"/{n}") for f in files))


FORBIDDEN = re.compile(
    r"\b(he|him|his|himself|dear|dearer|shall|who\s+(pushes|feeds|reads)|gone\s+on\s+with"
    r"|for\s+so\s+long|source\s+documents?|document\s+00\d)\b",
    re.IGNORECASE,
)
"""What nobody would say to a colleague, and what only the authors know the meaning of."""

READ = ("README.md", "CONTRIBUTING.md", "Makefile", "docs", "changes", "examples", "bench", "src")
"""Files, and folders with everything in them."""


@pytest.mark.parametrize("place", READ)
def test_words_are_plain(place: str) -> None:
    found = []
    for file in [ROOT / place, *(ROOT / place).rglob("*")]:
        if file.is_file() and file.suffix in {"", ".md", ".py"}:
            text = file.read_text()
            for match in FORBIDDEN.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{file.relative_to(ROOT)}:{line}: {match[0]}")
    assert not found
