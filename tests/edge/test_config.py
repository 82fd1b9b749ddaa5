"""`tree.toml`: what is written is understood, and a mistake is named with its place."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from paneflow import PaneflowError
from paneflow.engines.edge.config import (
    ConfigError,
    FileInputConfig,
    LimitsConfig,
    MqttInputConfig,
    Parent,
    ParquetOutputConfig,
    StdoutOutputConfig,
    TreeConfig,
    ZmqInputConfig,
    read_tree,
)
from paneflow.written import query_of

TREE = """
[columns]
ts = "timestamp[us, UTC]"
house = "string"
load = "float64"
note = "string"

[query]
key = "house"
lateness = "2 seconds"
windows = { minute = "tumbling('1 minute')", ten = "count(10)" }
aggregates = { peak = "max('load')" }

[interpretations]
ten = "local"

[node.cloud]
role = "root"
listen = "tcp://127.0.0.1:7000"
log = "logs/cloud"
metrics = "127.0.0.1:9100"
status = "tcp://127.0.0.1:7099"
keep = "10 minutes"
output = { kind = "stdout", format = "json" }

[node.street]
role = "merge"
parent = "cloud"
listen = "tcp://127.0.0.1:7001"
log = "logs/street"
patience = "1 minute 30 seconds"
children = ["house-7"]
limits = { message = "16 MB", waiting = "1.5 GiB", messages_per_second = 100 }

[node.house-1]
role = "child"
parent = "street"
log = "/var/lib/paneflow/house-1"
idle = "20 seconds"
sources = 2

[[node.house-1.input]]
kind = "mqtt"
address = "mqtt://127.0.0.1:1883"
topic = "home/{house}/load"

[[node.house-1.input]]
kind = "file"
path = "readings"
follow = true
"""

Read = Callable[..., TreeConfig]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the file above, with one text replaced by another."""

    def read(old: str = "", new: str = "") -> TreeConfig:
        assert old in TREE
        file = tmp_path / "tree.toml"
        file.write_text(TREE.replace(old, new, 1) if old else TREE)
        return read_tree(file, query_of)

    return read


def test_a_whole_tree_is_read(read: Read, tmp_path: Path) -> None:
    tree = read()
    assert list(tree.nodes) == ["cloud", "street", "house-1"]
    assert tree.columns.field("ts").type == pa.timestamp("us", "UTC")
    assert tree.question.query.key == ("house",)
    assert tree.question.asked == {"ten": "local"}

    cloud, street, house = tree.nodes.values()
    assert (cloud.role, cloud.parent, cloud.listen) == ("root", None, "tcp://127.0.0.1:7000")
    assert (cloud.metrics, cloud.status) == ("127.0.0.1:9100", "tcp://127.0.0.1:7099")
    assert cloud.outputs == (StdoutOutputConfig("json"),)
    assert cloud.log == tmp_path / "logs" / "cloud"
    assert street.limits == LimitsConfig(16_000_000, 100.0, 3 * 2**29)
    assert street.patience == 90
    assert (cloud.keep, house.idle, house.sources) == (600_000_000, 20, 2)
    assert house.log == Path("/var/lib/paneflow/house-1")
    assert house.inputs == (
        MqttInputConfig("mqtt://127.0.0.1:1883", "home/{house}/load"),
        FileInputConfig(tmp_path / "readings", follow=True),
    )
    assert house.question is tree.question


def test_nodes_know_their_parents_and_children(read: Read) -> None:
    nodes = read().nodes
    assert nodes["cloud"].children == ("street",)
    assert nodes["street"].parent == Parent("tcp://127.0.0.1:7000", "cloud")
    assert nodes["street"].children == ("house-7", "house-1")
    assert nodes["house-1"].parent == Parent("tcp://127.0.0.1:7001", "street")


def test_a_parent_may_be_an_address(read: Read) -> None:
    known = read('parent = "street"', 'parent = "tcp://127.0.0.1:7001"')
    assert known.nodes["house-1"].parent == Parent("tcp://127.0.0.1:7001", "street")
    other = read('parent = "street"', 'parent = "tcp://127.0.0.1:7555"')
    assert other.nodes["house-1"].parent == Parent("tcp://127.0.0.1:7555")
    assert other.nodes["street"].children == ("house-7",)


def test_machines_that_talk_to_each_other_have_keys(tmp_path: Path) -> None:
    text = """
        columns = { t = "int64", v = "float64" }
        query = { windows = "tumbling(5)", aggregates = { peak = "max('v')" }, time = "t" }
        [node.east]
        role = "merge"
        parent = { name = "cloud", address = "tcp://cloud.example:7000" }
        listen = "tcp://*:7001"
        address = "tcp://gateway.example:7001"
        log = "log"
        keys = "keys"
        [node.plug]
        role = "child"
        parent = "east"
        log = "plug"
        keys = "keys"
        input = { kind = "zmq", address = "tcp://*:*" }
    """
    file = tmp_path / "tree.toml"
    file.write_text(text)
    east, plug = read_tree(file, query_of).nodes.values()
    assert east.keys == tmp_path / "keys"
    assert east.parent == Parent("tcp://cloud.example:7000", "cloud")
    assert plug.parent == Parent("tcp://gateway.example:7001", "east")
    assert plug.inputs == (ZmqInputConfig("tcp://*:*"),)

    file.write_text(text.replace('keys = "keys"', "", 1))
    with pytest.raises(
        ConfigError, match=r"\[node.east\]: tcp://\*:7001 can be reached from other"
    ):
        read_tree(file, query_of)
    file.write_text(text.replace('address = "tcp://gateway.example:7001"', ""))
    with pytest.raises(ConfigError, match=r"\[node.plug\]: .* does not say how it is reached"):
        read_tree(file, query_of)
    file.write_text(text.replace('name = "cloud", ', ""))
    with pytest.raises(ConfigError, match="a parent is recognised by the key under its name"):
        read_tree(file, query_of)


def test_several_outputs_may_be_written(read: Read, tmp_path: Path) -> None:
    tree = read(
        'output = { kind = "stdout", format = "json" }',
        '[[node.cloud.output]]\nkind = "stdout"\n'
        '[[node.cloud.output]]\nkind = "parquet"\nfolder = "rows"',
    )
    assert tree.nodes["cloud"].outputs == (
        StdoutOutputConfig("text"),
        ParquetOutputConfig(tmp_path / "rows"),
    )


def test_a_query_may_stand_in_a_module_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    tree = tomllib.loads(TREE)
    module = "asked_beside_the_tree"
    query = re.search(r"\[query\]\n.*?\n\n", TREE, re.DOTALL)
    assert query
    (tmp_path / f"{module}.py").write_text(
        f"from paneflow.written import read_query\nloads = read_query({tree['query']!r})\n"
    )
    file = tmp_path / "tree.toml"
    file.write_text(f'query = "{module}:loads"\n' + TREE.replace(query[0], ""))
    assert list(read_tree(file, query_of).question.query.windows) == ["minute", "ten"]


def test_a_node_is_picked_by_role_or_name(read: Read) -> None:
    tree = read()
    assert tree.node("root").name == "cloud"
    assert tree.node("child", "house-1").name == "house-1"
    with pytest.raises(ConfigError, match=r"no \[node.house1\]: did you mean 'house-1'"):
        tree.node("child", "house1")
    with pytest.raises(ConfigError, match="'street' has the role 'merge', not 'child'"):
        tree.node("child", "street")


def test_the_role_alone_does_not_pick_among_several(read: Read) -> None:
    more = '\n[node.house-2]\nrole = "child"\nparent = "street"\nlog = "logs/house-2"\n'
    more += 'input = { kind = "file", path = "more.csv" }\n[node.cloud]'
    tree = read("\n[node.cloud]", more)
    with pytest.raises(ConfigError, match=r"2 nodes .*house-2, house-1.* say which with --name"):
        tree.node("child")


def test_a_role_that_no_node_has_is_refused(read: Read) -> None:
    tree = read()
    street = TreeConfig(tree.file, tree.question, tree.columns, {"street": tree.nodes["street"]})
    with pytest.raises(ConfigError, match=r"0 nodes with the role 'root' .* describe one"):
        street.node("root")


STREET = r"\[node\.street\]: "
MISTAKES = [
    ("lateness", "latness", r"\[query\]: a query has no 'latness': did you mean 'lateness'"),
    ("tumbling('1 minute')", "tumblin('1 minute')", r"\[query\]: window 'minute' .* 'tumbling'"),
    ("max('load')", "max('lod')", r"\[query\]: column 'lod' is needed"),
    ('ten = "local"', 'ten = "locl"', r"interpretation 'locl' of window 'ten' is not known"),
    ('ten = "local"', 'tenn = "local"', "'tenn' is given an interpretation, but the query has no"),
    ("[interpretations]", "[interpretation]", "'interpretation' is not known: did you mean 'inter"),
    ("float64", "flaot64", r"\[columns\]: column 'load' has the type 'flaot64'"),
    ("[columns]", "[colums]", "'columns' is missing: write for example columns = {"),
    ('role = "merge"', 'role = "merger"', STREET + "role = 'merger' is not known: .* 'merge'"),
    ('role = "merge"', "", STREET + "'role' is missing: write for example role ="),
    ('listen = "tcp://127.0.0.1:7001"', "", STREET + "'listen' is missing"),
    ("patience", "patiense", STREET + "'patiense' is not known: did you mean 'patience'"),
    ('"1 minute 30 seconds"', '"soon"', STREET + "patience: The patience was given as 'soon'"),
    ('"1 minute 30 seconds"', "90", STREET + "patience must be text, but 90 is a number"),
    ("sources = 2", "sources = 0", "sources = 0 must be more than 0"),
    ("sources = 2", 'sources = "two"', "sources must be a number, but 'two' is text"),
    ('"10 minutes"', "600", "keep = 600 must be text with a unit"),
    ('"1 minute 30 seconds"', '"0 s"', STREET + "patience: .* has to be more than 0"),
    ('log = "logs/street"', "", STREET + "'log' is missing"),
    ('log = "logs/street"', 'log = ""', STREET + "log is empty"),
    ('parent = "cloud"', "", STREET + "'parent' is missing"),
    ('parent = "cloud"', 'parent = "clod"', STREET + "parent = 'clod' is neither .* 'cloud'"),
    (
        'parent = "cloud"',
        'parent = "street"',
        "report to each other in a circle .*street -> street",
    ),
    ('parent = "cloud"', 'parent = "house-1"', STREET + "parent = 'house-1' is a child"),
    (
        'parent = "cloud"',
        'parent = { name = "x" }',
        r"\[node.street.parent\]: 'address' is missing",
    ),
    ('parent = "cloud"', 'parent = "tcp://127.0.0.1"', STREET + "parent: .* is not an address"),
    ('parent = "cloud"', 'parent = "tcp://*:7000"', STREET + "parent = .* names no host"),
    ('parent = "cloud"', 'parent = "tcp://127.0.0.1:99999"', STREET + "parent .* has no port from"),
    ('parent = "cloud"', "parent = 5", STREET + "parent must be text, but 5 is a number"),
    ('["house-7"]', '["house-7", 7]', STREET + "children is a list of names, but one of them is 7"),
    (
        '["house-7"]',
        '["cloud"]',
        STREET[:-2] + " counts 'cloud' among its children, but the parent",
    ),
    ('"16 MB"', '"16 apples"', r"\[node.street.limits\]: message = '16 apples' is not a size"),
    ("waiting", "wating", r"\[node.street.limits\]: 'wating' is not known: did you mean 'waiting'"),
    ("= 100", "= 0", r"\[node.street.limits\]: messages_per_second = 0 must be more than 0"),
    ("= 100", "= true", "messages_per_second must be a number, but True is true or false"),
    ('"127.0.0.1:9100"', '"127.0.0.1"', r"\[node.cloud\]: metrics = .* has no port"),
    ('"127.0.0.1:9100"', '"http://127.0.0.1:9100"', "metrics = .* has a protocol"),
    ('kind = "stdout"', 'kind = "stdot"', r"\[node.cloud.output\]: kind = 'stdot' .* 'stdout'"),
    ('format = "json"', 'format = "xml"', r"\[node.cloud.output\]: format = 'xml' is not known"),
    ('output = { kind = "stdout", format = "json" }', "", "the root needs somewhere to write rows"),
    ('output = { kind = "stdout", format = "json" }', "output = [5]", "output is made of tables"),
    ("topic", "topics", r"\[\[node.house-1.input\]\] 1: 'topic' is missing"),
    ('path = "readings"', "", r"\[\[node.house-1.input\]\] 2: 'path' is missing"),
    ("follow = true", 'follow = "yes"', r"input\]\] 2: follow must be true or false, but 'yes'"),
    ("follow = true", 'folow = "yes"', r"input\]\] 2: 'folow' is not known: did you mean 'follow'"),
    ('"mqtt://127.0.0.1:1883"', '"127.0.0.1:1883"', "is not a broker: write mqtt://HOST:PORT"),
    (
        'role = "child"',
        'role = "child"\nlisten = "tcp://127.0.0.1:1"',
        "'listen' is not for a node",
    ),
    ("[node.street]", '[node."-street"]', "'-street' cannot be the name of a node"),
    ('role = "merge"', 'role = "root"', r"\[node.street\]: 'parent' is not for a node"),
    ("[query]", "[query", "is not TOML"),
    (TREE[TREE.index("\n[node") :], "", "no node is described"),
]


@pytest.mark.parametrize(
    ("old", "new", "reason"), MISTAKES, ids=[new[:40] for _, new, _ in MISTAKES]
)
def test_a_mistake_is_named_with_its_place(read: Read, old: str, new: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        read(old, new)
    assert "tree.toml" in str(caught.value)
    assert isinstance(caught.value, PaneflowError)


def test_two_roots_are_refused(read: Read) -> None:
    root = TREE[TREE.index("[node.cloud]") : TREE.index("[node.street]")]
    with pytest.raises(ConfigError, match="cloud and other are both roots"):
        read("[node.street]", root.replace("cloud", "other") + "[node.street]")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml cannot be read \(No such file"):
        read_tree(tmp_path / "nowhere.toml", query_of)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match=r"latin\.toml is not a text in UTF-8"):
        read_tree(tmp_path / "latin.toml", query_of)
