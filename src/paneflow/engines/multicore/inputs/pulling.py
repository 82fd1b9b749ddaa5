"""Threads that pull batches from inputs and push them to a stream, one thread for each source.

A source ends when its input does. An input that fails ends the whole stream, because its source
would hold back all rows for ever; with `idle` it only falls silent, like a source that is dead for
any other reason. In both cases `stream.metrics()` shows the error.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from paneflow.engines.multicore.inputs.reading import Input


class Taker(NamedTuple):
    """What a stream does with an input; references are weak, so that a dropped stream ends."""

    push: weakref.WeakMethod[Callable[[Any, int], None]]
    end: weakref.WeakMethod[Callable[[int], None]]
    fail: weakref.WeakMethod[Callable[[int, BaseException], None]]


class Pulled:
    """The inputs of one stream."""

    def __init__(self) -> None:
        self.sources: set[int] = set()
        """Sources that are pulled from inputs."""
        self.open: set[int] = set()
        """Those whose inputs have neither ended nor failed."""
        self.errors: dict[int, str] = {}
        """What inputs have failed with, by source."""
        self._inputs: dict[int, Input] = {}
        self._closed = False

    def start(self, source: int, given: Input, taker: Taker) -> None:
        """Pull an input in a thread of its own."""
        self.sources.add(source)
        self.open.add(source)
        self._inputs[source] = given
        threading.Thread(
            target=self._run,
            args=(source, given, taker),
            name=f"paneflow-source-{source}",
            daemon=True,
        ).start()

    def close(self) -> None:
        """Take nothing more from any input, and do not wait for their next batches."""
        self._closed = True
        for given in list(self._inputs.values()):
            given.give_up()

    def _run(self, source: int, given: Input, taker: Taker) -> None:
        failure: BaseException | None = None
        try:
            for batch in given.batches:
                push = taker.push()
                if push is None:
                    return
                push(batch, source)
                del push  # while this thread waits for the next batch, it does not hold the stream
        except BaseException as error:
            failure = error
        del self._inputs[source]
        self._tell(source, failure, taker)

    def _tell(self, source: int, failure: BaseException | None, taker: Taker) -> None:
        """Tell the stream how an input ended, unless nobody wants to know any more."""
        if self._closed:
            return
        end, fail = taker.end(), taker.fail()
        if failure is None and end is not None:
            end(source)
        elif failure is not None and fail is not None:
            self.errors[source] = f"{type(failure).__name__}: {failure}"
            fail(source, failure)
