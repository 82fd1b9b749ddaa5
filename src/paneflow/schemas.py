"""Schemas as text, for files that people write: the name of a column and the name of its type.

>>> schema = read_schema({"ts": "timestamp[us, UTC]", "house": "string", "load": "float64"})
>>> schema.field("ts").type
TimestampType(timestamp[us, tz=UTC])
>>> write_schema(schema)
{'ts': 'timestamp[us, UTC]', 'house': 'string', 'load': 'float64'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.names import is_name
from paneflow.suggesting import suggestion

_PLAIN: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32": pa.date32(),
}
_ALIASES = {"double": "float64", "date32[day]": "date32"}
"""Other names that Arrow prints; its `float` is left out, since Python's has 64 bits."""

_TIMESTAMP = re.compile(r"timestamp\[\s*(s|ms|us|ns)\s*(?:,\s*(?:tz=)?([^\]\s]+)\s*)?\]")
_DECIMAL = re.compile(r"decimal128\(\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\)")
_OFFSET = re.compile(r"[+-]\d\d:\d\d")
_PARAMETRIC = ("timestamp[us]", "timestamp[us, UTC]", "decimal128(10, 2)")


def read_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The schema that a mapping of column names to type names describes.

    >>> read_schema({"load": "flaot64"})
    Traceback (most recent call last):
    ...
    paneflow.errors.InputError: column 'load' has the type 'flaot64', which is not known: \
did you mean 'float64'?
    """
    if not isinstance(columns, Mapping):
        raise InputError(
            f"columns were given as {columns!r}: give a name and a type for each, for example "
            f'{{"ts": "timestamp[us, UTC]", "load": "float64"}}'
        )
    if not columns:
        raise InputError("there are no columns: give a name and a type for each")
    return pa.schema([(name, _read_type(name, text)) for name, text in columns.items()])


def write_schema(schema: pa.Schema) -> dict[str, str]:
    """A schema as text that `read_schema` reads.

    >>> write_schema(pa.schema([("price", pa.decimal128(10, 2))]))
    {'price': 'decimal128(10, 2)'}
    """
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"two columns of {', '.join(schema.names)} have one name: rename one")
    return {field.name: _write_type(field) for field in schema}


def _read_type(name: object, text: object) -> pa.DataType:
    if not is_name(name):
        raise InputError(f"the name of a column was given as {name!r}: give text")
    if not isinstance(text, str):
        raise InputError(
            f"the type of column {name!r} was given as {text!r}: give the name of a type, such as "
            f'"float64"'
        )
    wanted = text.strip()
    if wanted == "float":
        raise InputError(f"the type of column {name!r} is 'float': say float32 or float64")
    plain = _PLAIN.get(_ALIASES.get(wanted, wanted))
    if plain is not None:
        return plain
    if found := _TIMESTAMP.fullmatch(wanted):
        unit, zone = found.groups()
        _check_zone(name, zone)
        return pa.timestamp(unit, zone)
    if found := _DECIMAL.fullmatch(wanted):
        precision, scale = map(int, found.groups())
        if not 1 <= precision <= 38:
            raise InputError(
                f"the type of column {name!r} is {text!r}, but a decimal128 has 1 to 38 digits"
            )
        return pa.decimal128(precision, scale)
    raise InputError(
        f"column {name!r} has the type {text!r}, which is not known: "
        f"{suggestion(wanted, [*_PLAIN, *_PARAMETRIC])}"
    )


def _check_zone(name: str, zone: str | None) -> None:
    """Refuse a time zone that does not exist: Arrow would notice only when it is used."""
    if zone is None or zone == "UTC" or _OFFSET.fullmatch(zone):
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"the time zone {zone!r} of column {name!r} is not known: give one such as UTC, "
            f"Europe/Berlin or +02:00"
        ) from None


def _write_type(field: pa.Field) -> str:
    type_ = field.type
    for text, plain in _PLAIN.items():
        if plain.equals(type_):
            return text
    if pa.types.is_timestamp(type_):
        return f"timestamp[{type_.unit}{f', {type_.tz}' if type_.tz else ''}]"
    if pa.types.is_decimal128(type_):
        return f"decimal128({type_.precision}, {type_.scale})"
    raise InputError(
        f"column {field.name!r} has the type {type_}, which cannot be written as text: cast it to "
        f"one of {', '.join([*_PLAIN, *_PARAMETRIC])}"
    )
