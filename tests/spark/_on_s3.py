"""A stream whose input, rows and checkpoint are on S3: a process of its own, which a test may kill.

    python -m tests.spark._on_s3 ENDPOINT

It answers the files of `s3a://stream/in`, one in each micro-batch, and ends when they are used up.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.spark._driver import QUERIES, SCHEMA
from tests.spark.support import read_files

BUCKET = "s3a://stream"
QUERY = QUERIES["slices"]


def on_s3(endpoint: str) -> Any:
    """A session with the connector for S3, as a user would make it."""
    from paneflow.spark import session

    s3 = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "test",
        "secret.key": "test",
    }
    return session(
        "paneflow-s3",
        "local[2]",
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3.items()},
        **{
            "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{hadoop()}",
            "spark.sql.shuffle.partitions": 2,
            "spark.driver.memory": "1g",
        },
    )


def hadoop() -> str:
    """The version of Hadoop that comes with Spark."""
    import pyspark

    [jar] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def main(endpoint: str) -> None:
    """Answer all files."""
    frame = read_files(on_s3(endpoint), f"{BUCKET}/in", SCHEMA)
    stream = QUERY.write_stream(frame, f"{BUCKET}/rows", f"{BUCKET}/checkpoint", availableNow=True)
    stream.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
