"""Pictures of the messages of a tree over time, one for each way to read windows on several nodes.

`python -m bench.messages` draws them for docs/edge.md. Nothing is made up: two child nodes take
events, one at a time, and what they and the root say is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import pyarrow as pa
from matplotlib.figure import Figure as Picture

import paneflow as pf
from bench import report
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.root import Root
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import AFTER_ALL, Closed, Flush, Pushed, Reported

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64(), "mark": pa.bool_()})
SUM = "0:integer_sum(v).low"
"""The column of a slice that holds the sum, if that is small."""
END = 29
COLOURS = ("#d1495b", "#30638e", "#3a8f5c", "#edae49", "#7b5ea7", "#5b8fb9")
GREY = "#9aa5b1"
LANES = {"kitchen": 2.0, "root": 1.0, "hall": 0.0}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
TRAVEL = 0.9
"""How long a message is drawn to take."""

Events = Mapping[str, Mapping[int, int]]
"""Values by child node and time."""


@dataclass(frozen=True)
class Scene:
    """What one picture shows."""

    name: str
    window: W.Window
    events: Events
    way: str = "auto"
    marks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


STEADY = {
    "kitchen": {1: 3, 6: 2, 12: 4, 17: 1, 23: 1, 27: 2},
    "hall": {3: 1, 8: 5, 14: 2, 16: 2, 21: 3, 25: 1},
}
PAUSES = {
    "kitchen": {1: 3, 3: 2, 12: 4, 14: 1, 24: 1, 26: 2},
    "hall": {5: 1, 7: 5, 13: 2, 22: 3, 23: 1, 27: 2},
}
MARKED = {
    "kitchen": {1: 3, 5: 2, 9: 4, 15: 1, 20: 1, 26: 2},
    "hall": {3: 1, 9: 5, 13: 2, 17: 2, 20: 3, 25: 1},
}
SCENES = (
    Scene("slices", W.tumbling(10), STEADY),
    Scene("sessions", W.session(4), PAUSES),
    Scene("events", W.count(3), STEADY),
    Scene("local", W.count(2), STEADY, "local"),
    Scene("order", W.count(2), STEADY, "order"),
    Scene(
        "bounds",
        W.punctuation("mark"),
        MARKED,
        "bounds",
        {"kitchen": (9, 20), "hall": (9, 20)},
    ),
    Scene("gaps", W.count(2), STEADY, "gaps"),
)


@dataclass(frozen=True)
class Message:
    """What a child node has reported, when, and what it holds."""

    child: str
    when: int
    parts: list[dict[str, Any]]
    kind: str


@dataclass(frozen=True)
class Row:
    """A row of the root, and when it was given."""

    when: float
    row: dict[str, Any]


def play(scene: Scene) -> tuple[list[Message], list[Row]]:
    """Let the nodes of a scene take their events, and listen to what they say."""
    query = pf.Query({"w": scene.window}, {"sum": A.sum("v")}, time="t")
    question = Question(query, SCHEMA, {"w": scene.way})
    root = Root("root", question, list(scene.events))
    children = {name: Child(name, question) for name in scene.events}
    numbers = dict.fromkeys(children, 0)
    messages: list[Message] = []
    rows: list[Row] = []

    def speak(name: str, when: int) -> None:
        said = children[name].take(Flush()).report
        assert said is not None
        numbers[name] += 1
        found = [
            (kind, part)
            for kind, table in said.tables.items()
            for part in table.to_pylist()
            if table.num_rows
        ]
        kind = found[0][0] if found else ""
        messages.append(Message(name, when, [part for _, part in found], kind))
        root.take(Reported(name, numbers[name], said))
        if root.due or said.watermark == AFTER_ALL:
            made = root.take(Flush()).rows
            assert made is not None
            rows.extend(Row(when + TRAVEL, row) for row in made.to_pylist())

    for when in range(END):
        for name, child in children.items():
            if when in scene.events[name]:
                mark = when in scene.marks.get(name, ())
                row = {"t": when, "v": scene.events[name][when], "mark": mark}
                pushed = Pushed("sensor", pa.Table.from_pylist([row], SCHEMA))
                child.take(child.cut(pushed, when + 1))
                if child.due:
                    speak(name, when)
    for name, child in children.items():
        child.take(Closed())
        speak(name, END)
    return messages, rows


def draw(scene: Scene) -> Picture:
    """The lanes of the nodes, events on them, messages between them, rows of the root."""
    messages, rows = play(scene)
    matplotlib.rcParams["svg.hashsalt"] = "paneflow"
    picture = Picture(figsize=(9.6, 3.1), layout="constrained")
    panel = picture.subplots()
    for name, height in LANES.items():
        panel.axhline(height, color="#e6e6e6", linewidth=1, zorder=0)
        panel.text(-0.6, height, name, ha="right", va="center", fontsize=10)
    for name, height in LANES.items():
        for when, value in scene.events.get(name, {}).items():
            marked = when in scene.marks.get(name, ())
            panel.plot(when, height, "D" if marked else "o", color="black", markersize=5, zorder=3)
            side = 0.2 if height > 1 else -0.2
            panel.text(when, height + side, str(value), ha="center", va="center", fontsize=9)
    for message in messages:
        _message(panel, scene, message, rows)
    _rows(panel, rows)
    panel.axvline(END, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    panel.text(END + 0.2, 2.42, "the sensors end", fontsize=8, color=GREY)
    panel.set(xlim=(-0.4, END + 5), ylim=(-0.55, 2.55), yticks=[])
    panel.set_xlabel("time", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right", "left"]].set_visible(False)
    return picture


def _message(panel: Any, scene: Scene, message: Message, rows: list[Row]) -> None:
    """An arrow to the root, with what it carries; where nothing but a watermark does, thin."""
    height = LANES[message.child]
    inward = -1 if height > 1 else 1
    told = [
        (_says(message.kind, part), _colour(scene, message, part, rows)) for part in message.parts
    ]
    colour = told[0][1] if told else GREY
    panel.annotate(
        "",
        (message.when + TRAVEL, 1 - 0.09 * inward),
        (message.when, height + 0.06 * inward),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.6 if told else 0.6,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=2,
    )
    for place, (text, own) in enumerate(told):
        panel.text(
            message.when + 0.72,
            height + (0.34 + 0.17 * place) * inward,
            text,
            color=own,
            fontsize=8,
            va="center",
            bbox=PAPER,
        )
    for part in message.parts:
        start, last = _span(part)
        if last > start:
            own = _colour(scene, message, part, rows)
            panel.plot(
                [start, last], [height, height], color=own, linewidth=7, alpha=0.35, zorder=1,
                solid_capstyle="round",
            )  # fmt: skip


def _rows(panel: Any, rows: list[Row]) -> None:
    """Rows of the root where they are given, in the colours of their windows."""
    beside = 0
    for number, made in enumerate(rows):
        crowded = any(abs(other.when - made.when) < 4.2 for other in rows if other is not made)
        beside = -beside or 1 if crowded else 0
        panel.plot(made.when + 0.1, 1, "s", color="black", markersize=4, zorder=3)
        row = made.row
        panel.text(
            made.when + 0.5,
            1 - 0.17 * beside,
            f"{row['start']}–{row['end']}: {row['sum']}",
            color=COLOURS[number % len(COLOURS)],
            fontsize=9,
            fontweight="bold",
            va="center",
            bbox=PAPER,
        )


def _span(part: Mapping[str, Any]) -> tuple[int, int]:
    """From where to where a slice reaches on the lane of its node; nowhere for other parts."""
    if "last" in part:
        return part["start"], part["last"]
    if "end" in part:
        return part["start"], part["end"]
    return 0, 0


def _says(kind: str, part: Mapping[str, Any]) -> str:
    """A part of a report in a word or two."""
    if SUM in part:
        return f"Σ {part[SUM]}"
    if "sum" in part:
        return f"row {part['sum']}"
    if "over" in part:
        return "open" if not part["over"] else "over"
    return str(part["v"])


def _colour(scene: Scene, message: Message, part: Mapping[str, Any], rows: list[Row]) -> str:
    """The colour of the row that a part goes into."""
    for number, made in enumerate(rows):
        if part in _parts_of(scene, message, made.row):
            return COLOURS[number % len(COLOURS)]
    return GREY


def _parts_of(scene: Scene, message: Message, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a message that a row is made of."""
    for part in message.parts:
        group = part.get("key:window:group")
        if "t" in part:
            within = row["start"] <= part["t"] <= row["end"]
        elif scene.way == "order":
            within = group == row["seq"]
        elif scene.way == "local":
            within = (row["node"], row["seq"]) == (message.child, part["seq"])
        else:
            within = row["start"] <= part["start"] < row["end"]
        if within:
            yield part


def main() -> None:
    """Draw all pictures."""
    for scene in SCENES:
        picture = draw(scene)
        picture.savefig(report.PICTURES / f"edge-{scene.name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
