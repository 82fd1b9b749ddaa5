"""python bench/edge/node.py FILE: runs the node that the file describes, as a process."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from paneflow.engines.edge.config import NodeConfig
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.running.node import run


def main(file: str) -> int:
    """Run a node until it is stopped; returns the exit code."""
    query, schema, settings, pace = pickle.loads(Path(file).read_bytes())
    return run(NodeConfig(question=Question(query, schema), columns=schema, **settings), pace)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
