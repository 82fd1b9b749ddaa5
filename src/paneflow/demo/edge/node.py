"""`python -m paneflow.demo.edge.node NAME`: a node of the demo, by the tree.toml in its folder.

It is what `paneflow node` runs, but tells the root more often what it does: people look on, and on
one machine that costs nothing.
"""

from __future__ import annotations

import sys

from paneflow.edge import read_tree
from paneflow.engines.edge.running.node import run
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.watching.logs import log_to

LIVELY = Pace(show=0.5, heartbeat=0.5)


def main(name: str) -> int:
    """Run a node until it is told to leave."""
    log_to(sys.stderr, name, as_json=True)
    return run(read_tree("tree.toml").nodes[name], LIVELY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
