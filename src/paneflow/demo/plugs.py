"""Three hours of smart plugs: what they draw, when they say so, and when their word arrives.

Houses differ in how often their plugs report, appliances in when and how much they draw. Readings
travel for a while, so they arrive out of order; a few are held up for more than an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]

BEGIN = np.datetime64("2026-01-15T17:30:00", "us")
SECONDS = 3 * 3600
HOUSES = 6
RATE = 12.0
"""How many times as often as needed the first house reports; the k-th house a k-th of it."""
SCHEMA = pa.schema(
    [
        ("house", pa.int32()),
        ("plug", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("load", pa.float64()),
        ("work", pa.float64()),
    ]
)
COLUMNS = "house int, plug string, ts timestamp, load double, work double"
"""The same for Spark."""

TRAVEL, LONGEST_TRAVEL = 4, 25
"""Seconds from a plug to us: in the mean, and at most."""
HELD_UP = (80 * 60, 110 * 60)
"""Seconds that a reading may be held up: for every hour it belongs to that is too long."""
ONE_IN = 1000
"""So many readings, and one of them is held up."""


@dataclass(frozen=True)
class Appliance:
    """What a plug is for: how much it draws, when, and how often it says so.

    A plug that draws nothing is silent: its uses are sessions.
    """

    load: Callable[[Floats], Floats]
    """Watts, by the seconds since it was switched on."""
    minutes: Sequence[float]
    """When it is switched on: before the beginning, if negative."""
    lasts: tuple[float, float]
    """For how many minutes."""
    every: float
    """Seconds between readings."""
    noise: float = 0.02


APPLIANCES = {
    "desk": Appliance(
        lambda s: 80 + 100 * np.sin(s / 900) ** 2 + 90 * np.sin(s / 170) ** 4,
        minutes=(-7, 74, 128),
        lasts=(40, 54),
        every=0.5,
        noise=0.12,
    ),
    "fridge": Appliance(
        lambda s: 85 + 240 * np.exp(-s / 6),
        minutes=(-5, 32, 71, 108, 142, 174),
        lasts=(16, 23),
        every=2,
    ),
    "heater": Appliance(
        lambda s: np.where(s % 540 < 540 * (0.25 + 0.65 * np.exp(-s / 3000)), 1500, 35),
        minutes=(-12, 100),
        lasts=(50, 75),
        every=1,
    ),
    "kettle": Appliance(
        lambda s: np.full_like(s, 2050),
        minutes=(8, 31, 66, 92, 143, 166),
        lasts=(2, 4),
        every=0.5,
    ),
    "oven": Appliance(
        lambda s: np.where((s < 600) | (s % 150 < 60), 2350, 60),
        minutes=(42,),
        lasts=(35, 60),
        every=1,
    ),
    "television": Appliance(
        lambda s: 110 + 18 * np.sin(s / 240),
        minutes=(-20, 105),
        lasts=(50, 72),
        every=4,
    ),
    "washer": Appliance(
        lambda s: np.where(s < 900, 2000, np.where(s < 4200, 190 + 70 * np.sin(s / 25), 450)),
        minutes=(34,),
        lasts=(84, 92),
        every=0.5,
    ),
}


@dataclass(frozen=True)
class Readings:
    """All readings in the order of their arrival."""

    table: pa.Table
    arrival: Floats
    """Seconds since the beginning."""
    held_up: npt.NDArray[np.bool_]


def readings(houses: int = HOUSES, rate: float = RATE, seed: int = 4) -> Readings:
    """What the plugs of some houses send.

    >>> readings(1, rate=0.1).table.column_names
    ['house', 'plug', 'ts', 'load', 'work']
    """
    random = np.random.default_rng(seed)
    parts = [
        _plug(random, house, name, rate / house)
        for house in range(1, houses + 1)
        for name in APPLIANCES
    ]
    table = pa.concat_tables(table for table, _ in parts)
    at = np.concatenate([at for _, at in parts])
    held_up = (at < SECONDS - HELD_UP[1]) & (random.random(len(at)) < 1 / ONE_IN)
    travel = np.minimum(random.exponential(TRAVEL, len(at)), LONGEST_TRAVEL)
    arrival = at + np.where(held_up, random.uniform(*HELD_UP, len(at)), travel)
    order = np.argsort(arrival, kind="stable")
    return Readings(table.take(pa.array(order)), arrival[order], held_up[order])


def _plug(
    random: np.random.Generator, house: int, name: str, rate: float
) -> tuple[pa.Table, Floats]:
    """The readings of one plug, and when they were taken; one in 250 has lost its load."""
    it = APPLIANCES[name]
    every = it.every / rate
    rating = random.lognormal(0, 0.2)
    at, load = [np.empty(0)], [np.empty(0)]
    for minute in it.minutes:
        elapsed = np.arange(0, 60 * random.uniform(*it.lasts), every)
        taken = 60 * minute + random.uniform(-90, 90) + elapsed
        at.append(taken + random.uniform(0, every / 2, len(elapsed)))
        load.append(it.load(elapsed) * rating * random.normal(1, it.noise, len(elapsed)))
    taken = np.concatenate(at)
    meant = (taken >= 0) & (taken < SECONDS)
    taken, watts = taken[meant], np.concatenate(load).round(1)[meant]
    columns = {
        "house": np.full(len(watts), house),
        "plug": pa.array([name] * len(watts), pa.string()),
        "ts": pa.array(BEGIN + (taken * 1e6).astype("timedelta64[us]")).cast(
            SCHEMA.field("ts").type
        ),
        "load": pa.array(watts, mask=random.random(len(watts)) < 0.004),
        "work": watts * every / 3600,
    }
    return pa.table(columns).cast(SCHEMA), taken
