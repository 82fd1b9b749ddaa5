"""The built project: a wheel that is complete and can be removed without a trace."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.processes
EXTRAS = {"edge", "bench", "dev", "java", "pandas", "plot", "polars", "sketches", "spark"}


def run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    for target in ("wheel", "sdist"):
        run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [n for n in packed.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(packed.read(name))


def described(metadata: Message) -> str:
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    files = (path for path in (source / "paneflow").rglob("*") if path.is_file())
    expected = {str(p.relative_to(source)) for p in files if "__pycache__" not in p.parts}
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    about = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - about == expected
    assert "paneflow/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in about)


def test_extras_are_those_there_is_something_for(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS


def test_only_spark_is_bound_to_an_older_pandas(metadata: Message) -> None:
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]

    def allows(extra: str, version: str) -> bool:
        bounds = [
            r.specifier
            for r in required
            if r.name == "pandas" and r.marker and r.marker.evaluate({"extra": extra})
        ]
        assert bounds
        return all(version in bound for bound in bounds)

    assert allows("pandas", "2.2.3")
    assert allows("pandas", "3.1.1")
    assert allows("spark", "2.3.3")
    assert not allows("spark", "3.0.0")


def test_the_description_has_no_link_that_leads_nowhere(metadata: Message, built: Path) -> None:
    text = described(metadata)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert not re.findall(r"\]\((?!https?:|#)[^)]*\)", text)
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.split("/", 1)[1] for name in packed.getnames() if "/" in name}
    linked = re.findall(
        r"(?<!!)\[[^\]]*\]\((?!https?:|#)([^)#]*)", (ROOT / "README.md").read_text()
    )
    assert linked
    for name in linked:
        assert f"`{name}`" in text, f"{name} is not named"
        assert name in held, f"{name} is not in the sdist"


def test_pip_uninstall_leaves_nothing_behind(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "empty"
    run(sys.executable, "-m", "venv", "--without-pip", place)
    before = set(place.rglob("*"))
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    assert set(place.rglob("paneflow/py.typed"))
    run(*pip, "uninstall", "--quiet", "--yes", "paneflow")
    assert set(place.rglob("*")) == before
