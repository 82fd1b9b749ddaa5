"""The demo from beginning to end: a tree starts, a node dies and returns, the rows are right.

Readings are sent much faster than they were taken. The node that is killed is a child: while it is
away, the broker keeps what the hubs publish, and its log keeps what it knew.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from paneflow.demo.edge.broker import HOW_TO_GET_IT, Broker, find_broker
from paneflow.demo.edge.checks import Different, compare
from paneflow.demo.edge.hubs import Hubs, over_mqtt, over_zmq
from paneflow.demo.edge.layout import COLUMNS, HOUSES, NODES, QUERY, VICTIM, addresses, tree_toml
from paneflow.demo.edge.processes import Processes
from paneflow.demo.edge.screen import counted, screen
from paneflow.demo.edge.watch import TICK, Watch
from paneflow.demo.plugs import Readings, readings
from paneflow.engines.edge.outputs.parquet import read_rows
from paneflow.errors import PaneflowError

OUTPUT = Path("demo-output") / "edge"
RATE = 0.25
"""How often plugs report; see `plugs.py`."""
SECONDS = 16.0
"""How long it takes to send all readings."""
DIES, RETURNS = 0.25, 0.7
"""When the node is killed and when it is started again, as shares of that time."""


def main() -> int:
    """Run the demo; the exit code is 1 if a row differs."""
    begun = time.monotonic()
    console = Console()
    sent = until_now(on_time(readings(sum(map(len, HOUSES.values())), RATE)))
    console.print(
        f"{sent.table.num_rows:,} readings of smart plugs in {sum(map(len, HOUSES.values()))} "
        f"houses, for a tree of {len(NODES)} processes\n{QUERY}",
        highlight=False,
        soft_wrap=True,
    )
    try:
        count = run(sent, OUTPUT, SECONDS, console)
    except Different as error:
        console.print(f"NOT equal: {error}", style="bold red", soft_wrap=True)
        return 1
    except PaneflowError as error:
        console.print(f"the demo cannot go on: {error}", soft_wrap=True)
        return 1
    console.print(
        f"Equal: all {count:,} rows of the root are those of the table engine, to the last bit.\n"
        f"{OUTPUT} holds the tree (tree.toml), its rows, and what the nodes have logged.\n"
        f"All of it took {time.monotonic() - begun:.0f} s.",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def on_time(all_of_them: Readings) -> Readings:
    """The readings that were not held up for an hour: the tree would not wait for those."""
    kept = ~all_of_them.held_up
    table = all_of_them.table.filter(pa.array(kept)).select(COLUMNS.names).cast(COLUMNS)
    return Readings(table, all_of_them.arrival[kept], all_of_them.held_up[kept])


def until_now(sent: Readings) -> Readings:
    """The same readings, the last of them taken within this minute: the tree catches up."""
    place = sent.table.schema.get_field_index("ts")
    latest = pc.max(sent.table["ts"]).as_py()
    minutes = (datetime.now(UTC) - latest) // timedelta(minutes=1)
    moved = pc.add(sent.table["ts"], pa.scalar(timedelta(minutes=minutes), pa.duration("us")))
    table = sent.table.set_column(place, sent.table.schema.field(place), moved)
    return Readings(table, sent.arrival, sent.held_up)


def run(sent: Readings, folder: Path, seconds: float, console: Console) -> int:
    """Send readings to a tree, kill one of its nodes meanwhile, and give how many rows are equal.

    `folder` gets all files; what an earlier run left there is removed.
    """
    compile_kernels(sent.table.slice(0, 100))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        broker = None
        program = find_broker()
        if program is None:
            console.print(
                f"Without mosquitto, the MQTT broker ({HOW_TO_GET_IT}), hubs speak ZeroMQ."
            )
        else:
            broker = stack.enter_context(Broker(program, folder / "broker"))
        at = addresses(None if broker is None else broker.address)
        (folder / "tree.toml").write_text(tree_toml(at), encoding="utf-8")
        nodes = stack.enter_context(Processes(folder))
        nodes.start(*NODES)
        watch = Watch(at.status, nodes, stack.enter_context(screen(console)))
        watch.wait_until(lambda: watch.alive == len(NODES))
        hubs = stack.enter_context(over_zmq(at) if broker is None else over_mqtt(broker.port))
        stream(introduce(sent, hubs, watch), hubs, nodes, watch, seconds)
        watch.happens = "all readings are sent"
        hubs.flush()
        watch.wait_until(lambda: counted(watch.tree, "events") >= sent.table.num_rows)
        nodes.leave()
    return compare(read_rows(folder / "rows"), sent.table)


def compile_kernels(few: pa.Table) -> None:
    """Answer over a few readings: compiled code is kept, so that not every node has to compile."""
    sliced = QUERY.with_windows({label: QUERY.windows[label] for label in ("hour", "use")})
    sliced.finish(sliced.slice(few))
    QUERY.over(few)


def introduce(sent: Readings, hubs: Hubs, watch: Watch) -> Readings:
    """Send the first reading of each house, and give the others.

    A child waits for the houses that it has heard of. If one house sent much before another is
    heard of, the first readings of the other would come too late.
    """
    _, firsts = np.unique(sent.table["house"].to_numpy(zero_copy_only=False), return_index=True)
    for first in sorted(firsts.tolist()):
        reading = sent.table.slice(first, 1)
        hubs.send(reading["house"][0].as_py(), reading)
    watch.wait_until(lambda: counted(watch.tree, "events") >= len(firsts))
    others = np.ones(len(sent.arrival), np.bool_)
    others[firsts] = False
    return Readings(sent.table.filter(pa.array(others)), sent.arrival[others], sent.held_up[others])


def stream(sent: Readings, hubs: Hubs, nodes: Processes, watch: Watch, seconds: float) -> None:
    """Send readings in the order of their arrival; in the middle, a node is killed and returns."""
    houses = sent.table["house"].to_numpy(zero_copy_only=False)
    begun, done, share = time.monotonic(), 0, 0.0
    dies, returns = DIES, RETURNS
    watch.happens = "readings flow"
    while done < len(houses):
        share = min((time.monotonic() - begun) / seconds, 1.0)
        if share >= dies:
            pid, dies = nodes.kill(VICTIM), 2.0
            watch.happens = f"{VICTIM} (process {pid}) has been killed with SIGKILL"
        if share >= returns:
            nodes.start(VICTIM)
            returns = 2.0
            watch.happens = f"{VICTIM} has been started again, from its log"
        upto = int(np.searchsorted(sent.arrival, share * sent.arrival[-1], side="right"))
        for house in sorted(set(houses[done:upto])):
            mine = np.flatnonzero(houses[done:upto] == house) + done
            hubs.send(house, sent.table.take(pa.array(mine)))
        done = upto
        watch.look()
        time.sleep(TICK)
