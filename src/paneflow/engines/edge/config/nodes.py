"""One node of a tree, as a file says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from paneflow.engines.edge.config.addresses import host_and_port, is_open, listening, reached
from paneflow.engines.edge.config.ends import read_input, read_output
from paneflow.engines.edge.config.model import (
    ROLES,
    LimitsConfig,
    NodeConfig,
    Parent,
    Role,
    ZmqInputConfig,
)
from paneflow.engines.edge.config.section import Section
from paneflow.engines.edge.network.addresses import stays_here
from paneflow.engines.edge.question import Question
from paneflow.suggesting import suggestion

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_ONLY_FOR: Mapping[str, tuple[Role, ...]] = {
    "parent": ("child", "merge"),
    "listen": ("merge", "root"),
    "address": ("merge", "root"),
    "children": ("merge", "root"),
    "patience": ("merge", "root"),
    "idle": ("child",),
    "sources": ("child",),
    "keep": ("root",),
    "input": ("child",),
    "output": ("root",),
}


@dataclass(frozen=True)
class Place:
    """Where a node stands in the tree: what must be known of all nodes to read one."""

    section: Section
    role: Role
    listen: str | None
    address: str | None


def read_place(name: str, section: Section) -> Place:
    """The role of a node, and where others reach it."""
    if not _NAME.fullmatch(name):
        raise section.error(
            f"{name!r} cannot be the name of a node, because files are named after it: use "
            f"letters, digits, '_', '-' and '.', and not '-' or '.' first"
        )
    given = section.needed_text("role", '"child", "merge" or "root"', ROLES)
    role = next(role for role in ROLES if role == given)
    for key, roles in _ONLY_FOR.items():
        if section.has(key) and role not in roles:
            raise section.error(
                f"{key!r} is not for a node with the role {role!r}, only for {' and '.join(roles)}"
            )
    listen, address = listening(section, "listen"), reached(section, "address")
    if role != "child":
        section.require("listen", '"tcp://127.0.0.1:7001"')
        assert listen is not None
        address = address or (None if is_open(listen) else listen)
    return Place(section, role, listen, address)


def read_node(
    name: str, places: Mapping[str, Place], question: Question, columns: pa.Schema
) -> NodeConfig:
    """A node, of which all but its children is known."""
    place = places[name]
    section, role = place.section, place.role
    inputs = tuple(map(read_input, section.tables("input")))
    outputs = tuple(map(read_output, section.tables("output")))
    if role == "child" and not inputs:
        raise section.error(f"a child needs events: add an [[node.{name}.input]]")
    if role == "root" and not outputs:
        raise section.error(f"the root needs somewhere to write rows: add a [node.{name}.output]")
    stamped = not pa.types.is_integer(columns.field(question.query.time).type)
    config = NodeConfig(
        name=name,
        role=role,
        question=question,
        columns=columns,
        log=section.needed_path("log", f'"logs/{name}"'),
        parent=None if role == "root" else _parent(section, places),
        listen=place.listen,
        children=section.texts("children"),
        patience=section.seconds("patience") or NodeConfig.patience,
        sources=section.whole("sources") or NodeConfig.sources,
        idle=section.seconds("idle"),
        keep=section.ticks("keep", stamped) or NodeConfig.keep,
        keys=section.path("keys"),
        metrics=host_and_port(section, "metrics"),
        status=listening(section, "status"),
        limits=_limits(section.table("limits")),
        inputs=inputs,
        outputs=outputs,
    )
    section.finish()
    _check_keys(section, config)
    return config


def _parent(section: Section, places: Mapping[str, Place]) -> Parent:
    """The parent: the name of a node in the file, an address, or a table with both."""
    example = '"tcp://127.0.0.1:7001", or the name of a node in this file'
    section.require("parent", example)
    below = section.table("parent") if section.is_table("parent") else None
    if below is not None:
        below.require("address", '"tcp://127.0.0.1:7001"')
        parent = Parent(str(reached(below, "address")), below.text("name"))
        below.finish()
        return parent
    given = section.needed_text("parent", example)
    if "://" in given:
        name = next((name for name, place in places.items() if place.address == given), None)
        return Parent(str(reached(section, "parent")), name)
    if given not in places:
        raise section.error(
            f"parent = {given!r} is neither an address nor a node in this file: "
            f"{suggestion(given, places)}"
        )
    above = places[given]
    if above.role == "child":
        raise section.error(f"parent = {given!r} is a child, which has no nodes below it")
    if above.address is None:
        raise section.error(
            f"parent = {given!r} listens at {above.listen}, which does not say how it is reached: "
            f'write in [node.{given}] for example address = "tcp://gateway.local:7001"'
        )
    return Parent(above.address, given)


def _limits(section: Section | None) -> LimitsConfig:
    if section is None:
        return LimitsConfig()
    limits = LimitsConfig(
        message_bytes=section.size("message", LimitsConfig.message_bytes),
        messages_per_second=section.number("messages_per_second"),
        waiting_bytes=section.size("waiting", LimitsConfig.waiting_bytes),
    )
    section.finish()
    return limits


def _check_keys(section: Section, config: NodeConfig) -> None:
    """Beyond this machine nodes talk only to nodes whose keys they know."""
    sensors = [one.address for one in config.inputs if isinstance(one, ZmqInputConfig)]
    above = [config.parent.address] if config.parent else []
    used = [a for a in (config.listen, config.status, *above, *sensors) if a is not None]
    outside = [address for address in used if not stays_here(address)]
    if config.keys is None and outside:
        raise section.error(
            f"{outside[0]} can be reached from other machines, so keys are needed: make them with "
            f'`paneflow keys make FOLDER {config.name}` and write keys = "FOLDER"'
        )
    if config.keys is not None and config.parent is not None and config.parent.name is None:
        raise section.error(
            f"with keys, a parent is recognised by the key under its name: write "
            f'parent = {{ name = "NAME", address = "{config.parent.address}" }}'
        )
