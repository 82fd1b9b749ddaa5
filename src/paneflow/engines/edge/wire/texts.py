"""JSON in messages, taken apart with care: who sent it may mean harm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from paneflow.engines.edge.wire.errors import WireError

T = TypeVar("T")


def write_text(about: Mapping[str, Any]) -> str:
    """A mapping as text; nothing at all if it is empty."""
    return json.dumps(dict(about), separators=(",", ":")) if about else ""


def read_text(text: str) -> dict[str, Any]:
    """The mapping that a text holds."""
    if not text:
        return {}
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"the text in a message is not JSON: {error}") from None
    if not isinstance(about, dict):
        raise WireError(f"the text in a message is a {type(about).__name__}, not an object")
    return about


def read_field(about: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """A field that must be there and be of this type."""
    value = about.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WireError(
            f"a message should say {name!r} as {kind.__name__}, but says {_short(value)}"
        )
    return value


def read_names(about: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field that must be there and be a list of texts."""
    values = read_field(about, name, list)
    if not all(isinstance(value, str) for value in values):
        raise WireError(f"a message should say {name!r} as texts, but says {_short(values)}")
    return tuple(values)


def read_times(about: Mapping[str, Any], name: str) -> dict[str, int]:
    """A field that must be there and be an object of whole numbers."""
    values = read_field(about, name, dict)
    return {str(key): read_field(values, key, int) for key in values}


def _short(value: object) -> str:
    return repr(value)[:80]
