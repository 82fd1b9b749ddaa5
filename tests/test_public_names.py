"""What a user finds: `dir()` lists what is public, and everything public documents itself."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import paneflow
from paneflow import aggregates, windows
from paneflow.aggregates.aggregate import Constant, Multiset, Ordered
from paneflow.aggregates.defined import Definition
from paneflow.aggregates.operator import Operator
from paneflow.engines.multicore.choosing import StreamPlan
from paneflow.engines.multicore.pump.metrics import Latency, StreamMetrics
from paneflow.engines.multicore.stream import Stream

MODULES = {
    "paneflow": paneflow,
    "windows": windows,
    "aggregates": aggregates,
    "spark": importlib.import_module("paneflow.spark"),
    "edge": importlib.import_module("paneflow.edge"),
}
REACHED = (Stream, StreamPlan, StreamMetrics, Latency, Definition)
"""Classes that are not exported: a user is given their objects, and does not make them."""
BASES = (Constant, Multiset, Ordered, Operator)
"""What new aggregates are built from: documented in the same style, without examples."""


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_dir_lists_what_is_public_and_nothing_else(module: Any) -> None:
    shown = dir(module)
    assert len(shown) == len(set(shown))
    assert {name for name in shown if not name.startswith("__")} == set(module.__all__)
    assert all(hasattr(module, name) for name in shown)
    assert {"__all__", "__doc__", "__file__", "__name__", "__spec__"} <= set(shown)


def exported() -> Iterator[tuple[str, Any]]:
    for title, module in MODULES.items():
        for name in module.__all__:
            yield f"{title}.{name}", getattr(module, name)
    for kind in (*REACHED, *BASES):
        yield kind.__name__, kind


def functions() -> dict[str, Any]:
    """Public functions, and methods of public classes that override nothing."""
    found = {}
    for name, thing in exported():
        if inspect.isfunction(thing):
            found[name] = thing
        elif inspect.isclass(thing):
            for method, given in vars(thing).items():
                function = getattr(given, "__func__", given)
                inherited = any(hasattr(base, method) for base in thing.__mro__[1:])
                if inspect.isfunction(function) and method[0] != "_" and not inherited:
                    found[f"{name}.{method}"] = function
    return found


def classes() -> dict[str, type]:
    return {name: thing for name, thing in exported() if inspect.isclass(thing)}


def sections(documented: Any) -> dict[str, str]:
    """The parts of a docstring: the summary under "", then one for each heading."""
    text = inspect.getdoc(documented) or ""
    parts = re.split(r"^(Args|Attributes|Returns|Example):\n", text, flags=re.MULTILINE)
    headings = parts[1::2]
    assert len(set(headings)) == len(headings), "a section occurs twice"
    return {"": parts[0], **dict(zip(headings, parts[2::2], strict=True))}


def named_in(section: str) -> list[str]:
    return re.findall(r"^    \*{0,2}(\w+): \S", section, re.MULTILINE)


def parameters(function: Any) -> list[inspect.Parameter]:
    given = inspect.signature(function).parameters.values()
    return [parameter for parameter in given if parameter.name not in ("self", "cls")]


def has_summary(text: str) -> bool:
    first, _, rest = text.partition("\n")
    return bool(re.match(r"\S.*[.:]$", first)) and (not rest or rest.startswith("\n"))


FUNCTIONS = functions()
CLASSES = classes()
WITHOUT_EXAMPLE = (*(f"{kind.__name__}." for kind in BASES), "Definition.")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_documents_its_parameters_its_result_and_its_use(name: str) -> None:
    function = FUNCTIONS[name]
    found = sections(function)
    assert has_summary(found[""])
    assert named_in(found.get("Args", "")) == [p.name for p in parameters(function)]
    returns = typing.get_type_hints(function, localns=HINTS)["return"]
    assert ("Returns" in found) == (returns is not type(None))
    if not name.startswith(WITHOUT_EXAMPLE):
        assert ">>> " in found["Example"]


ANY = {"table", "table_or_schema", "batch", "events", "frame", "identity", "value", "values"}
"""Parameters that take what no type can say: tables of every library, a user's values."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_have_types_that_say_something(name: str) -> None:
    for parameter in parameters(FUNCTIONS[name]):
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name
        if parameter.name not in ANY:
            assert parameter.annotation not in ("object", "Any"), parameter.name


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_documents_what_it_is_made_of(name: str) -> None:
    kind = CLASSES[name]
    found = sections(kind)
    assert vars(kind).get("__doc__"), "a class has a docstring of its own"
    assert has_summary(found[""])
    if is_dataclass(kind):
        assert named_in(found.get("Attributes", "")) == [field.name for field in fields(kind)]
    elif "__init__" in vars(kind) and kind not in REACHED:
        assert named_in(found["Args"]) == [p.name for p in parameters(kind.__init__)]  # type: ignore[misc]
    if not issubclass(kind, BaseException) and kind not in BASES:
        assert ">>> " in found["Example"]
    for member, given in vars(kind).items():
        if isinstance(given, property) and member[0] != "_":
            assert has_summary(inspect.getdoc(getattr(kind, member)) or ""), member


HINTS = {"Query": paneflow.Query, "Stream": Stream}
