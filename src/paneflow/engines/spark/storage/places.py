"""Which storage a path or a URI names, resolved as Spark resolves it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from paneflow.engines.spark.storage.contract import Storage
from paneflow.engines.spark.storage.hadoop_files import HadoopFiles
from paneflow.engines.spark.storage.local_files import LocalFiles
from paneflow.errors import InputError, UnsupportedError

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""How a URI begins; a single letter is a drive of Windows."""


def storage_of(spark: Any, given: str | os.PathLike[str], what: str) -> Storage:
    """The storage that a session means by a path; an error if it cannot be reached.

    Nothing is written. `what` says in errors what the path is for. Without a JVM, as with Spark
    Connect, or without a session, only this machine's folders can be reached.
    """
    text = os.fspath(given)
    if isinstance(given, os.PathLike) and SCHEME.match(text) and not text.startswith("file:"):
        raise InputError(
            f"the {what} {text!r} was given as a path, which loses part of a URI: give it as text"
        )
    jvm = getattr(spark, "_jvm", None)
    found = _without_jvm(text, what) if jvm is None else _by_session(spark, jvm, text, what)
    try:
        found.names()
    except OSError as error:
        raise InputError(
            f"the {what} {found.uri} cannot be reached ({_reason(error)}): check its address and "
            f"whether this user may read it. Nothing was written"
        ) from None
    return found


def made(storage: Storage, what: str) -> Storage:
    """The storage, with its folder."""
    try:
        storage.make()
    except OSError as error:
        raise InputError(
            f"the {what} {storage.uri} cannot be written ({_reason(error)}): name a folder in "
            f"which this user may write"
        ) from None
    return storage


def active_session() -> Any:
    """The session that is running, if any."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _by_session(spark: Any, jvm: Any, text: str, what: str) -> Storage:
    try:
        return _resolved(spark, jvm, text)
    except Exception as error:
        raise UnsupportedError(
            f"Spark cannot open the {what} {text!r} ({_reason(error)}): if its connector is "
            f"missing, name it in spark.jars.packages when the session starts, for example "
            f"org.apache.hadoop:hadoop-aws:{_hadoop(jvm)} for s3a. Nothing was written"
        ) from None


def _resolved(spark: Any, jvm: Any, text: str) -> Storage:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(text)
    files = path.getFileSystem(conf)
    whole = files.makeQualified(path)
    if whole.toUri().getScheme() == "file":
        return LocalFiles(Path(whole.toUri().getPath()))
    return HadoopFiles(jvm, conf, whole)


def _without_jvm(text: str, what: str) -> Storage:
    if not SCHEME.match(text):
        return LocalFiles(Path(text).absolute())
    if text.startswith("file:"):
        return LocalFiles(Path(unquote(urlsplit(text).path)))
    raise UnsupportedError(
        f"the {what} {text!r} is not on this machine, and its file system can be reached through "
        f"a Spark session with a JVM only, which Spark Connect has not: name a local folder, or "
        f"run the stream where its driver is"
    )


def _hadoop(jvm: Any) -> str:
    return str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())


def _reason(error: Exception) -> str:
    """The first line of what went wrong."""
    thrown = getattr(error, "java_exception", None)
    said = str(thrown.toString() if thrown is not None else getattr(error, "strerror", error))
    return said.strip().splitlines()[0] if said.strip() else type(error).__name__
