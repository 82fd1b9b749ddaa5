"""What every storage promises, on the disk and through Hadoop; and what cannot be reached."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.storage.contract import draft_of, drafted
from paneflow.engines.spark.storage.hadoop_files import PIECE, HadoopFiles
from paneflow.engines.spark.storage.local_files import LocalFiles
from paneflow.engines.spark.storage.places import storage_of
from tests.spark.support import PLACES, storage

places = pytest.mark.parametrize("place", PLACES)


def test_each_place_has_its_own_storage(spark: Any, tmp_path: Path) -> None:
    assert isinstance(storage(spark, "disk", tmp_path), LocalFiles)
    assert isinstance(storage(spark, "hadoop", tmp_path), HadoopFiles)


@places
def test_a_file_is_written_once(spark: Any, tmp_path: Path, place: str) -> None:
    files = storage(spark, place, tmp_path / "a b%20c")
    assert files.names() == []
    assert files.create("x", b"first")
    assert not files.create("x", b"second")
    assert files.read("x") == b"first"
    assert files.create_or_find("x", b"first")
    assert not files.create_or_find("x", b"second")
    assert files.names() == ["x"]
    assert (tmp_path / "a b%20c" / "x").read_bytes() == b"first"


@places
@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1])
def test_files_of_any_size(spark: Any, tmp_path: Path, place: str, size: int) -> None:
    files = storage(spark, place, tmp_path)
    data = bytes(range(256)) * (size // 256 + 1)
    assert files.create("x", data[:size])
    assert files.read("x") == data[:size]


@places
def test_a_file_is_replaced_and_removed(spark: Any, tmp_path: Path, place: str) -> None:
    files = storage(spark, place, tmp_path)
    files.create("x", b"first")
    files.replace("x", b"second")
    assert files.read("x") == b"second"
    assert files.names() == ["x"]
    for _ in range(2):
        files.remove("x")
    assert files.names() == []
    with pytest.raises(FileNotFoundError):
        files.read("x")


@places
def test_folders(spark: Any, tmp_path: Path, place: str) -> None:
    files = storage(spark, place, tmp_path)
    inner = files.within("inner")
    assert inner.names() == []
    inner.make()
    inner.make()
    inner.create("x", b"")
    assert inner.uri.endswith("/inner")
    assert files.names() == ["inner"]
    files.remove("inner")
    assert files.names() == inner.names() == []


def test_of_several_that_write_a_file_one_succeeds(tmp_path: Path) -> None:
    """On the disk: Hadoop renames files of a disk in two steps, those of HDFS in one."""
    files = LocalFiles(tmp_path)
    won: list[bytes] = []

    def write(data: bytes) -> None:
        for k in range(40):
            if files.create(str(k), data):
                won.append(data)

    threads = [threading.Thread(target=write, args=(bytes([k]),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 40
    assert sorted(won) == sorted(files.read(name) for name in files.names())


def test_drafts_say_what_they_were_to_become() -> None:
    assert drafted(draft_of("rows-1.parquet")) == "rows-1.parquet"
    assert draft_of("x") != draft_of("x")
    assert drafted("rows-1.parquet") is None


def test_where_there_are_no_links_a_file_is_still_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", refused)
    files = LocalFiles(tmp_path)
    assert files.create("x", b"first")
    assert not files.create("x", b"second")
    assert files.names() == ["x"] and files.read("x") == b"first"


# Paths, as Spark reads them.


def test_a_relative_path_is_what_spark_takes_it_for(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant = spark._jvm.org.apache.hadoop.fs.Path("here").getFileSystem(
        spark._jsparkSession.sessionState().newHadoopConf()
    )
    monkeypatch.chdir(tmp_path)
    assert (
        storage_of(spark, "here", "folder").uri
        == f"{meant.getWorkingDirectory().toUri().getPath()}/here"
    )
    assert storage_of(None, "here", "folder").uri == f"{tmp_path}/here"


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}"])
def test_the_disk_by_its_uri(spark: Any, tmp_path: Path, form: str) -> None:
    for session in (spark, None):
        assert storage_of(session, form.format(tmp_path), "folder").uri == str(tmp_path)


def test_a_uri_without_a_session(tmp_path: Path) -> None:
    with pytest.raises(pf.UnsupportedError, match="'s3a://b/c' is not on this machine"):
        storage_of(None, "s3a://b/c", "checkpoint")


QUERY = pf.Query(W.tumbling("1 minute"), {"n": A.count()}, time="timestamp")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("s3a://bucket/folder", "hadoop-aws:3"),  # the connector is missing
        ("nonesuch://bucket/folder", "connector"),
        ("hdfs://127.0.0.1:9/folder", "cannot be reached"),  # nobody answers
        ("viewfs://unknown/folder", "Spark cannot open"),
        (Path("s3a://bucket/folder"), "give it as text"),
    ],
)
@pytest.mark.parametrize("what", ["sink", "checkpoint", "late"])
def test_what_cannot_be_reached_is_refused_before_anything_is_written(
    spark: Any, tmp_path: Path, uri: Any, said: str, what: str
) -> None:
    frame = spark.readStream.format("rate").load()
    folders = {name: str(tmp_path / name) for name in ("sink", "checkpoint", "late")} | {what: uri}
    spark.conf.set("ipc.client.connect.max.retries", "0")
    with pytest.raises(pf.PaneflowError, match=said) as found:
        QUERY.write_stream(frame, folders["sink"], folders["checkpoint"], late=folders["late"])
    assert str(uri) in str(found.value)
    assert list(tmp_path.iterdir()) == []
    assert len(str(found.value).splitlines()) == 1


def test_a_sink_with_the_rows_of_another_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load()
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink" / "rows-000000000-000001.parquet").touch()
    with pytest.raises(pf.InputError, match="rows of another stream"):
        QUERY.write_stream(frame, tmp_path / "sink", tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
