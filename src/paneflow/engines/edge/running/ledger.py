"""What a node knows, and the log that it can be made from again.

Everything that happens to a node is a record. A record goes to the log and to the state machine;
what the machine says may leave the node only after the log has been committed. After a restart the
machine takes the records of the log again and says the same again, under the same numbers: whoever
has had it already will notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from paneflow.engines.edge.config import NodeConfig, SlicesOutputConfig
from paneflow.engines.edge.journal import Journal, JournalError, RecordCodec
from paneflow.engines.edge.links import Kept, Sender
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.programme.child import ChildProgramme
from paneflow.engines.edge.programme.merge import MergeProgramme
from paneflow.engines.edge.programme.root import RootProgramme
from paneflow.engines.edge.records import BEFORE_ALL, Asked, Flush, Record, Said
from paneflow.engines.edge.running.asked import AsksOfOne
from paneflow.engines.edge.running.splitting import MOST_BYTES, split
from paneflow.engines.edge.running.standings import Standings
from paneflow.engines.edge.wire import Wire

MACHINE = "machine/"
MESSAGES = "messages"
PRESET = "preset"


class Step(NamedTuple):
    """What the root has made at once, under a number that it has after every restart."""

    number: int
    rows: pa.Table
    slices: pa.Table | None
    """What the rows were made of; None if nobody wants it, or there is none."""
    added: Mapping[str, pa.Table]
    """The rows of queries that were added, by their names."""


class Ledger:
    """The state machine of a node together with its log.

    Args:
        config: What the node is.
        wire: How reports are written.
        journal: The log. What it holds is taken at once.
    """

    def __init__(self, config: NodeConfig, wire: Wire, journal: Journal) -> None:
        self._config = config
        self._wire = wire
        self._journal = journal
        question = config.question
        child = config.role == "child"
        self._codec = RecordCodec(question.cut_schemas if child else question.schemas)
        self.machine = make_machine(config)
        self.standings = Standings(config.children)
        self.sender = Sender(wire)
        self._taken = 0
        self._most = min(MOST_BYTES, config.limits.message_bytes // 2)
        self._wants_slices = any(isinstance(o, SlicesOutputConfig) for o in config.outputs)
        self._reported = BEFORE_ALL
        self._steps: list[Step] = []
        self.asks: dict[str, AsksOfOne] = {}
        """What nodes below are asked, by their names."""
        self.asked = 0
        """The number of the last thing that this node was asked."""
        self._snapshot_bytes = 0
        self.unsaid = False
        """Whether anything has happened since the last report."""
        stored, records = journal.recover()
        if stored is None:
            self.snapshot()
        else:
            self._restore(Snapshot(*stored), wire)
        for data in records:
            self._take(self._codec.decode(data))

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._config.name

    def write(self, record: Record) -> None:
        """Take a record. It counts once the ledger is committed."""
        self._journal.append(self._codec.encode(record))
        self._take(record)

    def is_long(self, limit: int) -> bool:
        """Whether the log should be replaced by a snapshot: it is longer than that, and it."""
        return self._journal.size > max(limit, self._snapshot_bytes)

    def commit(self) -> list[Step]:
        """Make all records durable. Gives what outputs may now write."""
        self._journal.commit()
        steps, self._steps = self._steps, []
        return steps

    def snapshot(self) -> None:
        """Replace the log by the state that it has led to. All rows must have been written."""
        state = self.machine.snapshot()
        kept = self.sender.kept()
        about = {
            "node": self._identity(),
            "machine": state.about,
            "standings": self.standings.state(),
            "taken": self._taken,
            "reported": self._reported,
            "most": self._most,
            "newest": kept.newest,
            "unsaid": self.unsaid,
            "asks": {name: asks.state() for name, asks in self.asks.items()},
            "asked": self.asked,
        }
        tables = {f"{MACHINE}{name}": table for name, table in state.tables.items()}
        tables[MESSAGES] = pa.table({MESSAGES: pa.array(kept.messages, pa.large_binary())})
        tables[PRESET] = pa.table({PRESET: pa.array([kept.preset], pa.binary())})
        self._journal.snapshot(about, tables)
        self._snapshot_bytes = sum(table.nbytes for table in tables.values())

    def close(self) -> None:
        """Let go of the log. What was not committed is forgotten."""
        self._journal.close()

    def _take(self, record: Record) -> None:
        self._taken += 1
        self.standings.take(record)
        if isinstance(record, Asked):
            self.asked = record.number
        said = self.machine.take(record)
        if isinstance(record, Asked):
            self._learn()
        self.unsaid = not isinstance(record, Flush)
        self._keep(said)

    def _keep(self, said: Said) -> None:
        if said.report is not None:
            for report in split(said.report, self._reported, self._most):
                self.sender.add(report)
            self._reported = said.report.watermark
        for ask in said.asks:
            self.asks.setdefault(ask.to, AsksOfOne()).add(ask.about)
        slices = said.slices if self._wants_slices else None
        if said.rows is not None and (said.rows.num_rows or slices is not None or said.added):
            self._steps.append(Step(self._taken, said.rows, slices, said.added))

    def _learn(self) -> None:
        """Be able to read and write what is said of queries that were added."""
        known = self.machine.known
        self._wire.learn(known.schemas)
        self._codec.learn(known.cut_schemas if self._config.role == "child" else known.schemas)

    def _restore(self, snapshot: Snapshot, wire: Wire) -> None:
        about, tables = snapshot
        if about["node"] != self._identity():
            raise JournalError(
                f"the log in {self._config.log} was written by {_told(about['node'])}, and this is "
                f"{_told(self._identity())}: name another folder, or remove this one if its events "
                f"are no longer needed"
            )
        mine = {name: table for name, table in tables.items() if name.startswith(MACHINE)}
        state = {name.removeprefix(MACHINE): table for name, table in mine.items()}
        self.machine.restore(Snapshot(about["machine"], state))
        self._learn()
        self.standings.restore(about["standings"])
        messages = tuple(tables[MESSAGES][MESSAGES].to_pylist())
        kept = Kept(about["newest"], tables[PRESET][PRESET][0].as_py(), messages)
        self.sender = Sender(wire, kept)
        self._taken = about["taken"]
        self._reported = about["reported"]
        self._most = about["most"]
        self.unsaid = about["unsaid"]
        for name, asks in about["asks"].items():
            self.asks[name] = AsksOfOne(asks["newest"], tuple(asks["kept"]))
        self.asked = about["asked"]

    def _identity(self) -> dict[str, str]:
        config = self._config
        return {"name": config.name, "role": config.role, "digest": config.question.digest}


def make_machine(config: NodeConfig) -> ChildProgramme | MergeProgramme:
    """The state machine for a node's role."""
    name, question, columns = config.name, config.question, config.columns
    if config.role == "child":
        return ChildProgramme(name, question, columns, config.sources)
    if config.role == "root":
        return RootProgramme(name, question, columns, config.children, config.keep)
    return MergeProgramme(name, question, config.children)


def _told(node: dict[str, str]) -> str:
    return f"{node['role']} node {node['name']!r} with query {node['digest'][:8]}"
