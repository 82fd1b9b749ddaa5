"""Input, rows and checkpoint in an object store: a server on this machine that speaks S3.

The drivers are `_on_s3.py`. The connector comes from Maven Central (700 MB, once); where that
cannot be reached, these tests are skipped. S3 has no renaming: everything rests on conditional
writes here.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from tests.conftest import ROOT
from tests.spark._on_s3 import QUERY
from tests.spark.support import assert_same_set
from tests.spark.test_kill import PATIENCE, SLOW_START, drawn
from tests.spark.test_streaming import passed
from tests.waiting import wait_until

BUCKET = "stream"
MOTO = "moto[server]==5.2.5"
CENTRAL = "https://repo1.maven.org/maven2/org/apache/hadoop/hadoop-aws/maven-metadata.xml"
OVERTAKEN = ("another run", "ConcurrentModification", "concurrent", "CONCURRENT")
"""What a run says that a newer one has overtaken, by paneflow's commits or by Spark's."""


@cache
def reachable() -> bool:
    """Whether the connector and moto, which plays S3, can be had."""
    try:
        urllib.request.urlopen(CENTRAL, timeout=30).close()
    except OSError:
        return False
    dry = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", MOTO]
    return subprocess.run(dry, check=False).returncode == 0


pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    # As text, the condition is looked at only if the tests are to run.
    pytest.mark.skipif("not reachable()", reason="needs Maven Central and PyPI"),
]


def driver(*arguments: str, log: Path) -> subprocess.Popen[bytes]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark._on_s3", *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the object store is."""
    folder = tmp_path_factory.mktemp("s3")
    # Not among what the other tests need: moto would hold back the versions of some of that.
    venv.create(folder / "moto", with_pip=True)
    moto = str(folder / "moto" / "bin" / "python")
    subprocess.run([moto, "-m", "pip", "install", "--quiet", MOTO], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, endpoint = ("127.0.0.1", port), f"http://127.0.0.1:{port}"
    serve = [moto, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(serve, stdout=log, stderr=log)
    try:
        wait_until(lambda: listens(address))
        yield endpoint
    finally:
        running.kill()
        running.wait()


def listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


class Store:
    """The bucket, empty."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._files = fs.S3FileSystem(
            access_key="test",
            secret_key="test",
            endpoint_override=endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )
        self._files.create_dir(BUCKET)
        self._files.delete_dir_contents(BUCKET)

    def paths(self, folder: str) -> list[str]:
        found = fs.FileSelector(f"{BUCKET}/{folder}", allow_not_found=True, recursive=True)
        return [file.path for file in self._files.get_file_info(found) if file.is_file]

    def put(self, parts: list[pa.Table]) -> None:
        """Input files, which Spark reads in this order."""
        for number, part in enumerate(parts):
            pq.write_table(part, f"{BUCKET}/in/{number:05}.parquet", filesystem=self._files)

    def rows(self) -> pa.Table:
        paths = [path for path in self.paths("rows") if path.endswith(".parquet")]
        return pa.concat_tables([pq.read_table(p, filesystem=self._files) for p in paths])

    def batches(self) -> int:
        commits = self.paths("checkpoint/spark/commits")
        return sum(path.rpartition("/")[2].isdigit() for path in commits)


def finished(process: subprocess.Popen[bytes], log: Path, allowed: tuple[str, ...]) -> bool:
    """Whether a driver has come to the end; if not, it was for a reason that is allowed."""
    code = process.wait(PATIENCE)
    said = log.read_text(errors="replace")
    assert code == 0 or any(reason in said for reason in allowed), said[-6000:]
    return code == 0


def completed(store: Store, folder: Path) -> None:
    """Start drivers until one comes to the end."""
    for attempt in range(10):
        log = folder / f"last-{attempt}"
        if finished(driver(store.endpoint, log=log), log, (SLOW_START,)):
            return
    raise AssertionError("the driver's workers are too slow to start, again and again")


def test_drivers_that_are_killed(server: str, tmp_path: Path) -> None:
    store, r, parts = Store(server), random.Random(0), drawn(0, files=8)
    store.put(parts)
    for kill in range(4):
        log = tmp_path / str(kill)
        process = driver(server, log=log)
        goal = store.batches() + r.choice([1, 1, 2])
        end = time.monotonic() + PATIENCE
        while process.poll() is None and store.batches() < goal and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(r.uniform(0, 0.5))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    completed(store, tmp_path)
    assert_same_set(QUERY, store.rows(), passed(QUERY, pa.concat_tables(parts)))
    kept = [path for path in store.paths("checkpoint/paneflow") if "commit" in path]
    assert len(kept) == 1


def test_two_drivers_at_once(server: str, tmp_path: Path) -> None:
    """Each may stop the other; what remains is done by a third."""
    store, parts = Store(server), drawn(1, files=8)
    store.put(parts)
    logs = [tmp_path / "one", tmp_path / "two"]
    drivers = [driver(server, log=log) for log in logs]
    for process, log in zip(drivers, logs, strict=True):
        finished(process, log, (SLOW_START, *OVERTAKEN))
    completed(store, tmp_path)
    assert_same_set(QUERY, store.rows(), passed(QUERY, pa.concat_tables(parts)))
