"""Files on any file system that Spark has a connector for, through Hadoop's own classes.

There are two ways to let a file appear as a whole, and only under a free name. Object stores that
can write on the condition that there is nothing yet say so (`CONDITIONAL`; S3 does, from Hadoop
3.4.2 on). On all others a hidden draft is renamed to its place, as Spark does with the files of its
own checkpoints: HDFS and Azure do this in one step. A store that has neither is as safe against two
runs that start at the same instant as Spark's checkpoints are there.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paneflow.engines.spark.storage.contract import Storage, draft_of

CONDITIONAL = "fs.option.create.conditional.overwrite"
PIECE = 8 << 20
"""Bytes that are handed to the JVM, or taken from it, at a time."""


class HadoopFiles(Storage):
    """A folder of a Hadoop file system."""

    def __init__(self, jvm: Any, conf: Any, path: Any) -> None:
        """`path` is Hadoop's, with scheme and authority; `conf` is the session's."""
        self._jvm = jvm
        self._conf = conf
        self._path = path
        self.uri = str(path.toString())
        with _as_python():
            self._files = path.getFileSystem(conf)
            self._conditional = bool(self._files.hasPathCapability(path, CONDITIONAL))
            if not self._conditional:
                context = jvm.org.apache.hadoop.fs.FileContext
                self._context = context.getFileContext(path.toUri(), conf)

    def within(self, name: str) -> HadoopFiles:
        return HadoopFiles(self._jvm, self._conf, self._at(name))

    def make(self) -> None:
        with _as_python():
            self._files.mkdirs(self._path)

    def names(self) -> list[str]:
        try:
            with _as_python():
                listed = self._files.listStatus(self._path)
                # All in one text: a call for each file would take a minute for a hundred thousand.
                hadoop = self._jvm.org.apache.hadoop
                listed = self._copied(listed, "org.apache.hadoop.fs.FileStatus")
                paths = self._copied(hadoop.fs.FileUtil.stat2Paths(listed), "java.lang.Object")
                paths = self._jvm.java.util.Arrays.asList(paths)
                joined = str(hadoop.util.StringUtils.join("\n", paths))
        except FileNotFoundError:
            return []
        return [path.rpartition("/")[2] for path in joined.split("\n") if path]

    def read(self, name: str) -> bytes:
        with _as_python():
            stream = self._files.open(self._at(name))
            try:
                pieces: list[bytes] = []
                while not pieces or len(pieces[-1]) == PIECE:
                    pieces.append(bytes(stream.readNBytes(PIECE)))
                return b"".join(pieces)
            finally:
                stream.close()

    def create(self, name: str, data: bytes) -> bool:
        with _as_python():
            if self._files.exists(self._at(name)):
                return False
            try:
                if self._conditional:
                    self._created_if_absent(name, data)
                else:
                    self._moved(self._drafted(name, data), name, "NONE")
            except Exception:
                # Connectors name the conflict differently: what counts is that the file is there.
                if self._files.exists(self._at(name)):
                    return False
                raise
        return True

    def replace(self, name: str, data: bytes) -> None:
        with _as_python():
            if self._conditional:
                self._write(self._files.create(self._at(name), True), data)
            else:
                self._moved(self._drafted(name, data), name, "OVERWRITE")

    def remove(self, name: str) -> None:
        with _as_python():
            self._files.delete(self._at(name), True)

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def _created_if_absent(self, name: str, data: bytes) -> None:
        builder = self._files.createFile(self._at(name)).must(CONDITIONAL, True)
        self._write(builder.recursive().overwrite(True).build(), data)

    def _drafted(self, name: str, data: bytes) -> Any:
        draft = self._at(draft_of(name))
        self._write(self._files.create(draft, True), data)
        return draft

    def _moved(self, draft: Any, name: str, how: str) -> None:
        """Rename a draft; unlike `FileSystem.rename`, this fails where the name is taken."""
        options = self._array("org.apache.hadoop.fs.Options$Rename", 1)
        options[0] = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename").valueOf(how)
        try:
            self._context.rename(draft, self._at(name), options)
        except Exception:
            self._files.delete(draft, False)
            raise

    def _copied(self, array: Any, kind: str) -> Any:
        """An array of exactly this type, without which Py4J does not find the method."""
        copied = self._array(kind, len(array))
        self._jvm.java.lang.System.arraycopy(array, 0, copied, 0, len(array))
        return copied

    def _array(self, kind: str, size: int) -> Any:
        lang = self._jvm.java.lang
        return lang.reflect.Array.newInstance(lang.Class.forName(kind), size)

    def _write(self, stream: Any, data: bytes) -> None:
        """Write all and close; a stream that is not closed leaves nothing in an object store."""
        for start in range(0, len(data), PIECE):
            stream.write(data[start : start + PIECE])
        if stream.hasCapability("hsync"):
            stream.hsync()
        stream.close()


@contextmanager
def _as_python() -> Iterator[None]:
    """Turn Java's exceptions into Python's."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        kind, said = str(thrown.getClass().getName()), str(thrown.getMessage())
        if kind == "java.io.FileNotFoundException":
            raise FileNotFoundError(errno.ENOENT, said) from None
        raise OSError(errno.EIO, f"{kind.rpartition('.')[-1]}: {said}") from None
    except PySparkException as error:
        raise OSError(errno.EIO, str(error)) from None
