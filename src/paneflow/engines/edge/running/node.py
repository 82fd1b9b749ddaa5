"""Runs one node of a tree: by itself as a process, or in a thread of a program."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.engines.edge.config import NodeConfig
from paneflow.engines.edge.inputs.contract import Input
from paneflow.engines.edge.journal import Journal
from paneflow.engines.edge.outputs.callback import CallbackOutput
from paneflow.engines.edge.programme.root import Standing
from paneflow.engines.edge.running.connections import Connections, closed_after
from paneflow.engines.edge.running.ends import make_inputs, make_output
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.loop import Loop, Surroundings
from paneflow.engines.edge.running.outlets import Outlets
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.running.requests import Request, Requests
from paneflow.engines.edge.running.security import Security
from paneflow.engines.edge.running.waking import Waking
from paneflow.engines.edge.running.watched import Watched
from paneflow.engines.edge.watching.metrics import Reading
from paneflow.engines.edge.watching.prometheus import PrometheusExporter
from paneflow.engines.edge.watching.status import StatusServer
from paneflow.engines.edge.wire import Wire
from paneflow.errors import PaneflowError, QueryError
from paneflow.wording import write_query

if TYPE_CHECKING:
    from paneflow.query import Query

log = logging.getLogger(__name__)

STANDARD = Pace()


class Node:
    """A node of a tree, with all that it needs to run.

    Its log is read and its sockets are bound at once, so whatever is wrong with them is raised
    here. It runs while a `with` block does, in a thread of its own, or in `serve`.

    Args:
        config: What the node is, as `read_tree` gives it.
        on_rows: At the root: also called with the rows of each step and their number. After a
            restart the last numbers may come again, with the same rows.
        on_added: At the root: the same for the rows of queries that are added, with their names.
        inputs: At a child node: further inputs.
        pace: How long it waits for what.

    Example:
        >>> from paneflow import edge
        >>> tree = edge.read_tree("tree.toml")  # doctest: +SKIP
        >>> with edge.Node(tree.node("child", "kitchen")) as kitchen:  # doctest: +SKIP
        ...     kitchen.metrics().events
        0
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        on_rows: Callable[[pa.Table, int], object] | None = None,
        on_added: Callable[[pa.Table, int, str], object] | None = None,
        inputs: Sequence[Input] = (),
        pace: Pace = STANDARD,
    ) -> None:
        self.config = config
        self.failure: Exception | None = None
        """Why the node has stopped, if it was not asked to."""
        self._pace = pace
        self._thread: Thread | None = None
        with ExitStack() as stack:
            self._watched = Watched(config, patience=3 * pace.show)
            wire = Wire(config.question.schemas, config.limits.message_bytes)
            ledger = Ledger(config, wire, stack.enter_context(Journal(config.log)))
            security = Security(config, self._watched.metrics)
            stack.callback(security.close)
            self._waking = waking = Waking()
            stack.callback(waking.close)
            connections = Connections(config, pace, security, wire, ledger, self._watched)
            self._children = stack.enter_context(closed_after(connections.children()))
            parent = stack.enter_context(closed_after(connections.parent(self._children)))
            self.inputs = [*make_inputs(config, security), *inputs]
            intake = stack.enter_context(closed_after(connections.intake(self.inputs)))
            outputs = [make_output(given) for given in config.outputs]
            if on_rows is not None or on_added is not None:
                outputs.append(CallbackOutput(on_rows or _nothing, on_added))
            outlets = Outlets(outputs)
            stack.callback(outlets.close)
            self._show(stack)
            around = Surroundings(parent, self._children, intake, outlets)
            self._requests = Requests(waking) if config.role == "root" else None
            most = config.limits.waiting_bytes
            self._loop = Loop(ledger, around, self._watched, waking, pace, most, self._requests)
            self._stack = stack.pop_all()

    @property
    def address(self) -> str | None:
        """Where nodes below connect, with the port that was chosen."""
        return None if self._children is None else self._children.listener.address

    @property
    def running(self) -> bool:
        """Whether the node's thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def metrics(self) -> Reading:
        """What the node has done so far.

        Returns:
            Events, rows, reports, what is on its way, and what each neighbour has sent.

        Example:
            >>> kitchen.metrics().events  # doctest: +SKIP
            1800
        """
        return self._watched.metrics.read()

    def add_query(self, name: str, query: Query, ways: Mapping[str, str] | None = None) -> None:
        """Answer another query from now on, at the root of a running tree.

        It has time windows and sessions, over the columns that the tree's events have, and
        aggregates that can be stated in words. `queries` tells from which time on its windows have
        rows: that is when all nodes know the query, or at once where it can share the slices of a
        query that runs. Its rows go where the others go: into a folder of its name, to `on_added`,
        or with its name to the standard output.

        When this returns, the query is in the log of the root: it is there after a restart, too.

        Args:
            name: What it is called: letters, digits, `_` and `-`.
            query: The query.
            ways: Interpretations of its windows, as `Question` takes them.

        Example:
            >>> query = pf.Query(W.tumbling("1 hour"), {"mean": A.mean("load")})  # doctest: +SKIP
            >>> root.add_query("hours", query)  # doctest: +SKIP
        """
        written, asked = write_query(query), dict(ways or {})
        self._change(lambda machine: machine.adding(name, written, asked))

    def remove_query(self, name: str) -> None:
        """Answer a query no more that was added: windows that end later have no rows.

        Args:
            name: What it was called.

        Example:
            >>> root.remove_query("hours")  # doctest: +SKIP
        """
        self._change(lambda machine: machine.removing(name))

    def queries(self) -> dict[str, Standing]:
        """How the queries stand that were added to the tree.

        Returns:
            By their names: from when on they have rows, how many, and whose slices they share.

        Example:
            >>> root.queries()["hours"].shares  # doctest: +SKIP
            'main'
        """
        return self._watched.queries

    def serve(self) -> None:
        """Run in this thread until the node is stopped or has left the tree.

        What has stopped it otherwise is raised.

        Example:
            >>> edge.Node(tree.node("root")).serve()  # doctest: +SKIP
        """
        try:
            if self._requests is not None:
                self._requests.open()
            with self._waking.by_signals():
                self._loop.run()
        finally:
            if self._requests is not None:
                self._requests.close()
            self._stack.close()

    def start(self) -> None:
        """Run in a thread, as `with` does.

        Example:
            >>> kitchen.start()  # doctest: +SKIP
        """
        if self._requests is not None:
            self._requests.open()
        self._thread = Thread(target=self._run, name=f"paneflow {self.config.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop soon, as the end of `with` does. Nothing is lost: the node can be made again.

        Example:
            >>> kitchen.stop()  # doctest: +SKIP
        """
        self._loop.stop()

    def leave(self) -> None:
        """Take no more events, report what there is, say goodbye to the parent, and stop.

        A node with nodes below it stops when these have left.

        Example:
            >>> for node in (kitchen, root):  # doctest: +SKIP
            ...     node.leave()
            >>> root.join()  # doctest: +SKIP
        """
        self._loop.leave()

    def join(self) -> None:
        """Wait until the node has stopped, and raise what has stopped it.

        Example:
            >>> kitchen.join()  # doctest: +SKIP
        """
        if self._thread is not None:
            self._thread.join()
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> Node:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self.join()

    def _change(self, request: Request) -> None:
        """Change the queries of the tree."""
        if self._requests is None:
            raise QueryError(
                f"node {self.config.name!r} has the role {self.config.role!r}, and queries change "
                f"at the root: add them to, and remove them from, that"
            )
        self._requests.make(request)

    def _run(self) -> None:
        try:
            self.serve()
        except Exception as error:
            self.failure = error
            _log_failure(error)

    def _show(self, stack: ExitStack) -> None:
        """Let Prometheus and `paneflow node top` look at the node, if it is to be seen."""
        config = self.config
        if config.metrics is not None:
            stack.enter_context(PrometheusExporter(self._watched.metrics, config.metrics))
        if config.status is not None:
            lines = self._watched.lines
            stack.enter_context(StatusServer(config.status, lines, config.name, config.keys))


def run(config: NodeConfig, pace: Pace = STANDARD) -> int:
    """Run a node as this process until it is stopped; returns the exit code.

    SIGTERM and SIGINT stop it, and it can be started again. SIGUSR1 makes it leave the tree for
    good: it reports what it has and says goodbye, once all nodes below it have left.
    """
    try:
        node = Node(config, pace=pace)
        for stops in (signal.SIGTERM, signal.SIGINT):
            signal.signal(stops, lambda number, frame: node.stop())
        signal.signal(signal.SIGUSR1, lambda number, frame: node.leave())
        about = {"role": config.role, "address": node.address, "process": os.getpid()}
        log.info("the node runs", extra={"fields": about})
        node.serve()
    except Exception as error:
        _log_failure(error)
        return 1
    log.info("the node has stopped")
    return 0


def _nothing(rows: pa.Table, number: int) -> None:
    """Nobody wants the rows of the first query."""


def _log_failure(error: Exception) -> None:
    """One line for what people can act on; for anything else, also where it comes from."""
    fields = {"fields": {"why": str(error)}}
    expected = isinstance(error, PaneflowError | OSError)
    log.error("the node stops", extra=fields, exc_info=None if expected else error)
