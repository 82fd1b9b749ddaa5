"""The project keeps its own promises: the lock, the Makefile, the layering."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def declared() -> list[Requirement]:
    """What pyproject.toml asks for in development, with `paneflow[extra]` spelled out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def spell_out(lines: list[str]) -> Iterator[Requirement]:
        for requirement in map(Requirement, lines):
            if requirement.name == project["name"]:
                for extra in sorted(requirement.extras):
                    yield from spell_out(project["optional-dependencies"][extra])
            else:
                yield requirement

    return [
        *spell_out(project["dependencies"]),
        *spell_out(project["optional-dependencies"]["dev"]),
    ]


def locked() -> dict[str, set[str]]:
    """The versions the lock gives each package (more than one if they differ by platform)."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    ):
        versions.setdefault(canonicalize_name(name), set()).add(version)
    return versions


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_lock_covers_every_declared_dependency(requirement: Requirement) -> None:
    versions = locked().get(canonicalize_name(requirement.name))
    assert versions, f"{requirement.name} is not in requirements.lock: run `make lock`"
    assert all(requirement.specifier.contains(version, prereleases=True) for version in versions)


def test_lock_names_no_host() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_make_alone_explains_every_target() -> None:
    answer = run("make")
    assert answer.returncode == 0, answer.stderr
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    explained = set(re.findall(r"^  ([a-z-]+) +\S", answer.stdout, re.MULTILINE))
    assert explained == set(phony[1].split())


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()
    assert re.search(r"^make test\b", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_every_mark_says_where_its_tests_run() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    marks = dict(line.split(": ", 1) for line in settings["ini_options"]["markers"])
    (slow,) = re.findall(r"^SLOW := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {*slow.split(" or "), "exhaustive"} == marks.keys()
    for mark, says in marks.items():
        assert f"`make test-{'exhaustive' if mark == 'exhaustive' else 'slow'}`" in says
    assert "make test-slow" in (ROOT / ".ci" / "run").read_text().splitlines()


TESTS = sorted((ROOT / "tests").rglob("*.py"))


def body(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What a function does, without the functions and classes in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def ways_out(function: ast.FunctionDef) -> Iterator[str]:
    """How a function may end before it has checked anything."""
    for node in body(function):
        where = f"line {node.lineno} of {function.name}" if hasattr(node, "lineno") else ""
        if isinstance(node, ast.Return) and (
            function.name.startswith("test")
            or (node.value is None and function.name.startswith(("assert", "check")))
        ):
            yield f"{where}: return"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            *("assume", "hypothesis.assume", "hypothesis.reject", "reject"),
            *("pytest.skip", "pytest.xfail", "pytest.importorskip"),
        ):
            yield f"{where}: {ast.unparse(node)}"
        if isinstance(node, ast.ExceptHandler) and all(
            isinstance(step, ast.Pass | ast.Continue | ast.Break) for step in node.body
        ):
            yield f"{where}: an error is passed over"


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_ends_early(path: Path) -> None:
    """A case without an answer is asserted to be refused; marks say where a test cannot run."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = [way for function in functions for way in ways_out(function)]
    assert not found, f"{path.name} may check nothing: {found}"


def test_rooms_import_only_the_rooms_below_them() -> None:
    answer = run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert answer.returncode == 0, answer.stdout


def test_every_room_has_a_contract_that_places_each_of_its_files() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    ordered = [
        container
        for contract in linter["contracts"]
        if contract["type"] == "layers" and contract["exhaustive"]
        for container in contract["containers"]
    ]
    rooms = [file.parent for file in (ROOT / "src" / "paneflow").rglob("__init__.py")]
    names = [".".join(room.relative_to(ROOT / "src").parts) for room in rooms]
    assert sorted(ordered) == sorted(names)
    assert not any("ignore_imports" in contract for contract in linter["contracts"])
