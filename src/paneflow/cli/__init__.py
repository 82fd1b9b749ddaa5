"""The command `paneflow`: runs the nodes of a tree, and shows what they do.

Mistakes that users can put right are one line on the standard error, and exit code 2.
"""

from __future__ import annotations

import sys

from paneflow.errors import PaneflowError

EXTRA = ("paho", "prometheus_client", "rich", "typer", "zmq")
"""The packages that the extra `edge` brings."""


def main() -> int:
    """Run the command with the arguments of this process, and give the exit code."""
    try:
        from paneflow.cli.app import app  # needs packages that not everybody has

        app(prog_name="paneflow")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        return _say(f'{error.name} is missing: pip install "paneflow[edge]"')
    except PaneflowError as error:
        return _say(" ".join(str(error).split()))
    return 0


def _say(problem: str) -> int:
    print(f"paneflow: {problem}", file=sys.stderr)
    return 2
