"""A smart plug that sends its readings to the child node `kitchen` of tree.toml, beside this file.

Start the nodes first, each in a terminal of its own:

    paneflow node root
    paneflow node merge
    paneflow node child

Then `python plug.py`. Kill any node and start it again meanwhile: no reading is lost, and none is
counted twice.
"""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta

from paneflow.edge import Sensor

ADDRESS = "tcp://127.0.0.1:7203"
BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECONDS = 120


def reading(second: int) -> dict[str, object]:
    """What the plug draws at a second of its life: nothing from time to time."""
    load = 1500.0 if second % 60 < 20 else 40.0 + 5.0 * math.sin(second)
    return {"ts": BEGIN + timedelta(seconds=second), "plug": "oven", "load": round(load, 1)}


def main(address: str = ADDRESS) -> None:
    """Send two minutes of readings, ten at a time."""
    with Sensor(address, "oven") as sensor:
        # Whoever can read its data again asks how far it has come.
        known = 10 * sensor.position(timeout=30)
        for second in range(known, SECONDS, 10):
            sensor.push([reading(k) for k in range(second, second + 10)])
        sensor.flush(timeout=30)
    print(f"{SECONDS - known} readings are in the log of the child")


if __name__ == "__main__":
    main(*sys.argv[1:])
