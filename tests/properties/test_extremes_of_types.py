"""Integers, times and zeros at the ends of their types: all engines agree, or all refuse.

The oracle computes with Python's integers, which have no ends.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from tests.properties.compare import assert_same_rows

INTEGERS = {
    str(type_): type_
    for type_ in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    )
}
FARTHEST, LONGEST = 2**61, 2**60
"""How far times reach, and how long windows are at most (docs/semantics.md)."""
DAY = 86_400_000
"""Milliseconds."""

AGGREGATES: dict[str, Callable[[random.Random], A.Aggregate]] = {
    "count": lambda r: A.count("v"),
    "sum": lambda r: A.sum("v"),
    "exact_sum": lambda r: A.sum("v", exact=True),
    "mean": lambda r: A.mean("v"),
    "product": lambda r: A.product("v"),
    "geometric_mean": lambda r: A.geometric_mean("v"),
    "min": lambda r: A.min("v"),
    "max": lambda r: A.max("v"),
    "first": lambda r: A.first("v"),
    "last": lambda r: A.last("v"),
    "arg_min": lambda r: A.arg_min("v", by="w"),
    "arg_max": lambda r: A.arg_max("w", by="v"),
    "median": lambda r: A.median("v"),
    "quantile": lambda r: A.quantile("v", r.choice([0, 0.3, 1])),
    "quantiles": lambda r: A.quantiles("v", [0.25, 0.9]),
    "mode": lambda r: A.mode("v"),
    "distinct": lambda r: A.distinct("v"),
    "top_k": lambda r: A.top_k("v", r.randint(1, 4)),
    "collect": lambda r: A.collect("v"),
    "bloom_filter": lambda r: A.bloom_filter("v", 64, 2),
    "approx_distinct": lambda r: A.approx_distinct("v", 7),
    "approx_quantile": lambda r: A.approx_quantile("v", 0.5),
}
WINDOWS: dict[str, Callable[[random.Random], W.Window]] = {
    "tumbling": lambda r: W.tumbling(r.randint(1, 9), offset=r.choice([0, -3, LONGEST])),
    "sliding": lambda r: W.sliding(r.randint(1, 12), r.randint(1, 5), offset=r.choice([0, 1])),
    "long": lambda r: W.sliding(LONGEST, LONGEST - r.randint(0, 3), offset=r.choice([-1, LONGEST])),
    "session": lambda r: W.session(r.choice([1, 4, LONGEST])),
    "count": lambda r: W.count(r.randint(1, 6), r.choice([1, 2, 7, 2**61])),
    "slide_by_tuple": lambda r: W.slide_by_tuple(r.choice([2, 9, LONGEST]), r.randint(1, 4)),
    "slide_by_time": lambda r: W.slide_by_time(r.choice([1, 4, 2**61]), r.choice([3, LONGEST])),
    "punctuation": lambda r: W.punctuation("b"),
    "delta": lambda r: W.delta("grows", amount(r, 1), amount(r, 0)),
}
MERGEABLE = ("tumbling", "sliding", "long", "session")


def amount(r: random.Random, least: int) -> int | float:
    """A range or slide of a delta: small or huge, whole or not."""
    whole = r.choice([least, 1, 2, 5, 2**53 + 1, 2**63, 2**64, 2**70])
    return r.choice([whole, whole + 0.5, float(whole)])


def ends(type_: pa.DataType) -> tuple[int, int]:
    width, signed = type_.bit_width, pa.types.is_signed_integer(type_)
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)


def integers(r: random.Random, type_: pa.DataType, n: int, nulls: float = 0.0) -> list[int | None]:
    """Values at the ends of a type, around zero, and around what float64 can tell apart."""
    low, high = ends(type_)
    if high > 2**63 - 1 and r.random() < 0.9:
        high = 2**63 - 1  # what lies beyond is refused, which is soon said
    near = [low, low + 1, low + 2, high, high - 1, high - 2, -1, 0, 1, 2**53, 2**53 + 1, -(2**53)]
    usable = [x for x in near if low <= x <= high]
    some = r.sample(usable, r.randint(1, len(usable)))
    return [None if r.random() < nulls else r.choice(some) for _ in range(n)]


def column(r: random.Random, values: list[Any], type_: pa.DataType) -> pa.Array:
    """A column, now and then as a dictionary with any type of index."""
    array = pa.array(values, type_)
    if r.random() < 0.7:
        return array
    index = INTEGERS[r.choice(list(INTEGERS))]
    return array.dictionary_encode().cast(pa.dictionary(index, type_))


def times(r: random.Random, n: int) -> list[int]:
    """Times in order: near zero, or as far away as they may be."""
    at = r.choice([0, 0, 0, FARTHEST - 20, -FARTHEST])
    drawn = [at + r.randint(0, 20) for _ in range(n)]
    if at and r.random() < 0.3:
        drawn[r.randrange(n)] = -at
    if r.random() < 0.05:
        drawn[r.randrange(n)] = r.choice([FARTHEST + 1, -FARTHEST - 1, 2**63 - 1, -(2**63)])
    return sorted(drawn)


def draw(r: random.Random, window: str, names: list[str], type_: pa.DataType) -> Any:
    n = r.choice([2, 12, 25, 40])
    nulls = r.choice([0.0, 0.0, 0.3])
    growing = sorted(x for x in integers(r, type_, n) if x is not None)
    table = pa.table(
        {
            "t": pa.array(times(r, n), pa.int64()),
            "k": column(r, integers(r, type_, n, nulls), type_),
            "v": column(r, integers(r, type_, n, nulls), type_),
            "w": column(r, integers(r, type_, n, nulls), type_),
            "grows": column(r, growing, type_),
            "b": pa.array([r.random() < 0.4 for _ in range(n)]),
        }
    )
    aggregates = {name: AGGREGATES[name](r) for name in names}
    key = r.choice([None, "k"])
    return pf.Query(WINDOWS[window](r), aggregates, key=key, time="t"), table


TOO_FAR = r"int64|too far|microseconds"
"""What every refusal of a value at the end of its type speaks of."""


def by_oracle(query: pf.Query, table: pa.Table) -> pa.Table | None:
    """The rows, or None where a value is too far away for any."""
    try:
        return query.over(table, engine="oracle")
    except pf.InputError as error:
        assert re.search(TOO_FAR, str(error)), error
        return None


def by_table(query: pf.Query, table: pa.Table, r: random.Random) -> pa.Table:
    return query.over(table, merge=r.choice(["auto", "sba", "flat_fat"]))


def by_slices(query: pf.Query, table: pa.Table, r: random.Random) -> pa.Table:
    cut = r.randint(0, len(table))
    return query.finish(query.slice(table.slice(0, cut)).merge(query.slice(table.slice(cut))))


def by_stream(query: pf.Query, table: pa.Table, r: random.Random) -> pa.Table:
    cuts = sorted({0, r.randint(0, len(table)), len(table)})
    with query.open(workers=r.choice([1, 1, 3])) as stream:
        for a, b in itertools.pairwise(cuts):
            stream.push(table.slice(a, b - a))
        stream.finish()
        return pa.concat_tables(
            [query.result_schema(table.schema).empty_table(), *stream.results()]
        )


def engines(window: str) -> Iterator[tuple[str, Callable[..., pa.Table]]]:
    yield "table", by_table
    yield "stream", by_stream
    if window in MERGEABLE:
        yield "slices", by_slices


def check(seed: str, window: str, names: list[str], type_: pa.DataType) -> bool:
    """Whether the oracle answers a random query: the engines then do too, or all say why not."""
    query, table = draw(random.Random(seed), window, names, type_)
    expected = by_oracle(query, table)
    for name, engine in engines(window):
        try:
            if expected is None:
                with pytest.raises(pf.PaneflowError, match=TOO_FAR) as refused:
                    engine(query, table, random.Random(seed))
                # A stream tells what it stumbled over: that must not be a mistake of ours.
                wrapped = str(refused.value)
                assert "failed with" not in wrapped or "failed with InputError" in wrapped
            else:
                assert_same_rows(query, engine(query, table, random.Random(seed)), expected)
        except BaseException as error:
            raise AssertionError(f"{seed}, {name}: {query!r}\n{table.to_pydict()}") from error
    return expected is not None


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("window", WINDOWS)
def test_integers_at_the_ends_of_their_types(window: str, type_: str) -> None:
    sums = ["sum", "exact_sum", "mean"]  # most of them are beyond int64, and refused
    others = [name for name in AGGREGATES if name not in sums]
    answered = [
        check(f"{window} {type_} {k}", window, names, INTEGERS[type_])
        for k, names in enumerate((sums, others[::2], others[1::2]))
    ]
    assert any(answered)


TEMPORAL = {
    str(type_): type_
    for type_ in (
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ns")),
    )
}


def check_delta(seed: str, type_: pa.DataType) -> None:
    """A delta window over whole numbers or times, by bounds of any kind, complete or not."""
    r = random.Random(seed)
    n = r.choice([1, 12, 30])
    stored = type_
    if pa.types.is_temporal(type_):
        stored = pa.int32() if type_.bit_width == 32 else pa.int64()
    drawn = sorted(x for x in integers(r, stored, n) if x is not None and x < 2**63)
    grows = pa.array(drawn, stored).view(type_) if stored != type_ else pa.array(drawn, type_)
    bounds: tuple[Any, Any] = amount(r, 1), amount(r, 0)
    if stored != type_:
        lengths = ["1 us", "999 us", "1 s", "1.5 s", "36 hours", "10000000 days"]
        bounds = r.choice(lengths), r.choice(["0 s", *lengths])
    window = W.delta("grows", *bounds, partial=r.random() < 0.5)
    positions = pa.array(range(len(drawn)), pa.int64())
    table = pa.table({"t": positions, "grows": grows, "v": positions})
    query = pf.Query(window, {"in": A.collect("v"), "low": A.min("grows")}, time="t")
    rows, expected = query.over(table), query.over(table, engine="oracle")
    assert rows.equals(expected), f"{seed}: {query!r}, {drawn}\n{rows}\n{expected}"


@pytest.mark.parametrize("type_", [*INTEGERS, *TEMPORAL])
def test_delta_measures_whole_numbers_and_times_exactly(type_: str) -> None:
    for seed in range(12):
        check_delta(f"{type_} {seed}", (INTEGERS | TEMPORAL)[type_])


@pytest.mark.parametrize("bound", [2**53 + 1, 2**2000])
def test_a_bound_that_no_float_holds_is_refused_over_floats(bound: int) -> None:
    query = pf.Query(W.delta("grows", bound, 1), {"n": A.count()}, time="t")
    for engine in ("oracle", "table"):
        with pytest.raises(pf.InputError, match="float64"):
            query.over(pa.table({"t": [1], "grows": [1.0]}), engine=engine)


STAMPS = {
    str(type_): type_
    for type_ in (
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.timestamp("ms", "UTC"), pa.date32(), pa.date64()),
    )
}


def check_times(seed: str, type_: pa.DataType) -> bool:
    """Times as far away as their type and we allow, and a little farther."""
    r = random.Random(seed)
    stored = type_
    if pa.types.is_temporal(type_):
        stored = pa.int32() if type_.bit_width == 32 else pa.int64()
    low, high = ends(stored)
    # What fits into 2**61 microseconds, by the unit of the type.
    unit = getattr(type_, "unit", "D" if stored == pa.int32() else "ms")
    per = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1, "D": 86_400 * 10**6}[unit]
    reach = FARTHEST // per if stored != type_ else FARTHEST
    step = 1000 if unit == "ns" and stored != type_ else DAY if pa.types.is_date64(type_) else 1
    near = [0, 1, -1, reach, -reach, reach - 1, 1 - reach]
    if r.random() < 0.2:
        near += [reach + 1, -reach - 1, low, high]
        step = 1
    usable = [x // step * step for x in near if low <= x // step * step <= high]
    drawn = sorted(r.choice(usable) for _ in range(r.choice([1, 2, 6])))
    t = pa.array(drawn, stored).view(type_) if stored != type_ else pa.array(drawn, type_)
    long: Any = "13343998 days" if stored != type_ else LONGEST
    short: Any = "1 us" if stored != type_ else 1
    window = r.choice(
        [
            W.tumbling(long),
            W.tumbling(short, offset=long),
            W.sliding(long, long, offset=short),
            W.session(long),
            W.session(short),
            W.slide_by_tuple(long, 1),
            W.slide_by_time(2, r.choice([long, short]), offset=r.choice([short, long])),
        ]
    )
    query = pf.Query(window, {"in": A.collect("v"), "last": A.last("t")}, time="t")
    table = pa.table({"t": t, "v": range(len(drawn))})
    expected = by_oracle(query, table)
    answers = [by_table, by_stream]
    if isinstance(window, W.Sliding | W.Session):
        answers.append(by_slices)
    for answer in answers:
        try:
            if expected is None:
                with pytest.raises(pf.InputError, match=TOO_FAR):
                    answer(query, table, random.Random(seed))
            else:
                rows = answer(query, table, random.Random(seed))
                assert rows.equals(expected), f"{rows}\n{expected}"
        except BaseException as error:
            raise AssertionError(f"{seed}, {answer.__name__}: {query!r}, {drawn}") from error
    return expected is not None


@pytest.mark.parametrize("type_", [*INTEGERS, *STAMPS])
def test_times_at_the_ends_of_their_range(type_: str) -> None:
    answered = [check_times(f"{type_} {seed}", (INTEGERS | STAMPS)[type_]) for seed in range(8)]
    assert sum(answered) > 2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("window", [W.tumbling(1), W.sliding(11, 2), W.sliding(100, 1)], ids=str)
def test_windows_that_slide_finely_have_numbers_in_every_strategy(
    window: W.Window, sign: int
) -> None:
    first = sign * (2**61 - 300)
    table = pa.table({"t": [first, first + 1, first + 5, first + 41], "v": [1, 2, 3, 4]})
    query = pf.Query(window, {"sum": A.sum("v")}, time="t")
    expected = query.over(table, engine="oracle")
    for strategy in BY_NAME:
        with query.open(workers=2, strategy=strategy) as stream:
            stream.push(table.slice(0, 2))
            stream.push(table.slice(2))
            stream.finish()
            rows = pa.concat_tables([expected.slice(0, 0), *stream.results()])
        assert_same_rows(query, rows, expected)


def test_windows_too_far_apart_to_be_numbered_are_refused() -> None:
    table = pa.table({"t": [-(2**61), 2**61], "v": [1, 2]})
    query = pf.Query(W.sliding(11, 2), {"sum": A.sum("v")}, time="t")
    stream = query.open(workers=2, strategy="pane_line")
    with pytest.raises(pf.PaneflowError, match="choose another strategy"), stream:
        stream.push(table)
        stream.finish()
        list(stream.results())


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_times_that_microseconds_cannot_hold_are_refused(unit: str) -> None:
    t = pa.array([0, 1 if unit == "ns" else 2**62]).cast(pa.timestamp(unit))
    query = pf.Query(W.tumbling("1 s"), {"n": A.count()}, time="t")
    table = pa.table({"t": t})
    for answer in (by_table, by_slices, by_stream):
        with pytest.raises(pf.InputError, match="microseconds"):
            answer(query, table, random.Random(0))


@pytest.mark.exhaustive
def test_ten_thousand_deltas_and_times_at_the_ends_of_their_types() -> None:
    for seed in range(10_000):
        r = random.Random(seed)
        check_delta(str(seed), r.choice(list((INTEGERS | TEMPORAL).values())))
        check_times(str(seed), r.choice(list((INTEGERS | STAMPS).values())))


@pytest.mark.exhaustive
def test_ten_thousand_tables_of_integers_at_the_ends_of_their_types() -> None:
    for seed in range(10_000):
        r = random.Random(seed)
        window, type_ = r.choice(list(WINDOWS)), r.choice(list(INTEGERS))
        check(str(seed), window, r.sample(list(AGGREGATES), 3), INTEGERS[type_])
