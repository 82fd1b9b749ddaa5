"""Laws: what is declared must hold, for built-in aggregates and for a user's own.

A planner relies on laws to reorder, regroup and take back. A declaration that a sample
contradicts is refused with that sample, since it would give different rows on different engines.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paneflow as pf
from paneflow import aggregates as A
from paneflow.aggregates import Laws
from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.laws import alike, check_laws
from paneflow.aggregates.operator import TIME, Operator
from paneflow.aggregates.values import Kind

Function = Callable[..., Any]


def define(
    lift: Function, combine: Function, identity: Any, *, commutative: bool = True, **options: Any
) -> Any:
    return A.define(
        lift, combine, lambda p: p, identity, commutative=commutative, name="own", **options
    )


def refused(state: Callable[[], object], *said: str) -> None:
    with pytest.raises(pf.QueryError) as caught:
        state()
    for part in ("own", *said):
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


def same(x: Any) -> Any:
    return x


# A user's own.


def test_a_combine_that_is_not_commutative_is_refused_with_the_counterexample() -> None:
    affine: dict[str, Any] = {
        "lift": lambda x: (0.5, x),
        "combine": lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
        "identity": (1.0, 0.0),
        "samples": [1.0, 2.0],
    }
    refused(
        lambda: define(**affine),
        "not commutative",
        "combine((0.5, 1.0), (0.5, 2.0)) = (0.25, 2.5)",
        "combine((0.5, 2.0), (0.5, 1.0)) = (0.25, 2.0)",
        "commutative=False",
    )
    assert not define(**affine, commutative=False)("v").laws.commutative


def test_the_counterexample_may_be_any_pair_of_samples() -> None:
    """Only one of many samples breaks the law."""
    keeps_left_if_negative = lambda a, b: a if a < 0 else max(a, b)  # noqa: E731
    refused(
        lambda: define(same, keeps_left_if_negative, -math.inf, samples=[1.0, 2.0, 3.0, -1.5]),
        "-1.5",
    )


def test_an_identity_that_changes_something() -> None:
    add = lambda a, b: a + b  # noqa: E731
    refused(
        lambda: define(same, add, 1.0, samples=[0.5]),
        "identity",
        "combine(1.0, 0.5) = 1.5",
        "0.5",
        "changes nothing",
    )


def test_an_identity_is_neutral_on_both_sides() -> None:
    """SBA puts it behind a partial, FlatFAT on both sides."""
    latest = lambda a, b: b  # noqa: E731
    refused(
        lambda: define(same, latest, 0.0, commutative=False, samples=[0.5, 2.0]),
        "identity",
        "combine(0.5, 0.0) = 0.0",
    )


def test_a_combine_that_is_not_associative() -> None:
    toward = lambda a, b: b if a == 0 else a if b == 0 else (a + b) / 2  # noqa: E731
    refused(
        lambda: define(same, toward, 0.0, samples=[1.0, 2.0, 4.0]),
        "not associative",
        "combine(combine(1.0, 2.0), 4.0) = 2.75",
        "combine(1.0, combine(2.0, 4.0)) = 2.0",
    )


def test_an_invert_that_does_not_take_back() -> None:
    add = lambda a, b: a + b  # noqa: E731
    refused(
        lambda: define(same, add, 0.0, invert=lambda whole, part: part - whole, samples=[0.5, 2.0]),
        "invert(combine(0.5, 2.0), 0.5) = -2.0",
        "leave it out",
    )
    assert define(same, add, 0.0, invert=lambda whole, part: whole - part)("v").laws.invertible
    assert not define(same, add, 0.0)("v").laws.invertible


def test_a_combine_that_is_not_idempotent() -> None:
    add = lambda a, b: a + b  # noqa: E731
    refused(lambda: define(same, add, 0.0, idempotent=True, samples=[0.5]), "idempotent", "0.5")
    assert define(same, lambda a, b: max(a, b), -math.inf, idempotent=True)("v").laws.idempotent


def test_floats_may_differ_in_their_last_bits() -> None:
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    define(same, lambda a, b: a + b, 0.0, samples=[0.1, 0.2, 0.3])


def test_samples_that_lift_cannot_take_are_passed_over() -> None:
    geometric = define(math.log, lambda a, b: a + b, 0.0, samples=[-1.0, 0.0, 2.0, 4.0])
    assert geometric("v").laws.commutative
    refused(
        lambda: define(math.log, lambda a, b: a - b, 0.0, samples=[-1.0, 0.0, 2.0, 4.0]),
        "not commutative",
        f"combine({math.log(2.0)!r}, {math.log(4.0)!r})",
    )


def test_a_lift_that_takes_no_usual_sample_is_checked_with_its_columns() -> None:
    """The usual samples are for one column of numbers; two columns, or text, come later."""
    subtract = lambda a, b: a - b  # noqa: E731
    product = define(lambda x, y: x * y, subtract, 0.0)("v", "w")
    kinds = {"v": Kind.INTEGER, "w": Kind.FLOAT}
    refused(lambda: product.operators(kinds), "not commutative")
    letters = define(lambda s: len(s), subtract, 0)("v")
    refused(lambda: letters.operators({"v": Kind.TEXT}), "not commutative")


def test_samples_of_which_lift_takes_none_are_refused() -> None:
    subtract = lambda a, b: a - b  # noqa: E731
    refused(lambda: define(lambda x, y: x * y, subtract, 0.0, samples=[1.0]), "lift", "samples")
    refused(
        lambda: define(lambda x, y: x * y, subtract, 0.0, samples=[(1.0, 2.0), (3.0, 0.5)]),
        "not commutative",
    )


def test_samples_of_several_columns_are_tuples() -> None:
    product = define(lambda x, y: x * y, lambda a, b: a + b, 0.0, samples=[(1.0, 2.0), (3.0, 0.5)])
    assert str(product("v", "w")) == "own(v, w)"


@pytest.mark.parametrize("role", ["lift", "combine", "lower", "invert"])
def test_functions_must_be_functions(role: str) -> None:
    functions: dict[str, Any] = {
        "lift": same,
        "combine": lambda a, b: a + b,
        "lower": same,
        "invert": lambda a, b: a - b,
    }
    functions[role] = 3
    refused(lambda: A.define(**functions, identity=0.0, commutative=True, name="own"), role, "3")


@pytest.mark.parametrize("identity", [0.0, (0.0,), (0.0, 0, 0), None], ids=str)
def test_an_identity_of_another_shape(identity: Any) -> None:
    pair = lambda a, b: (a[0] + b[0], a[1] + b[1])  # noqa: E731
    refused(
        lambda: define(lambda x: (x, 1), pair, identity, samples=[0.5]), repr(identity), "identity"
    )


def test_a_combine_that_fails_on_a_sample() -> None:
    """The default samples are numbers; a combine of texts must be given texts."""
    join = lambda a, b: a + b  # noqa: E731
    refused(lambda: define(same, join, "", commutative=False), "combine", "samples")
    define(same, join, "", commutative=False, samples=["a", "b"])


def test_partials_are_alike() -> None:
    nan = math.nan
    assert alike((1, 0.5), (1, 0.5 + 1e-12))
    assert alike((nan, 1), (nan, 1))
    assert alike(math.inf, math.inf)
    assert not alike(math.inf, -math.inf)
    assert not alike((1, 2), (1, 2, 3))
    assert not alike(1, 2)
    assert not alike(nan, 0.0)
    assert not alike(1e9, 1e9 + 10_000)


def test_laws_read_well() -> None:
    assert str(Laws()) == "associative, commutative"
    assert str(Laws(commutative=False, order_sensitive=True, growing=True)) == (
        "associative, order-sensitive, growing"
    )


# Built-in ones.

CONSTANT: list[Constant] = [
    A.sum("v"),
    A.sum("v", exact=True),
    A.mean("v"),
    A.var("v"),
    A.product("v"),
    A.geometric_mean("v"),
    A.min("v"),
    A.max("v"),
    A.first("v"),
    A.last("v"),
    A.arg_min("v", "w"),
    A.arg_max("v", "w"),
    A.linear_regression("v", "w"),
    A.moment_sketch("v"),
    A.bloom_filter("v", 64),
]


def partial_of(operator: Operator, event: dict[str, Any]) -> Any:
    """The partial of one event, as tuples of plain numbers so that it can be compared."""
    inputs = [event[i.column] for i in operator.inputs]
    if operator.absorb is not None:
        start = operator.start()
        bare = operator.absorb(start[0] if operator.bare else start, *inputs, *operator.parameters)
    else:
        assert operator.lift is not None
        bare = operator.lift(*inputs)
    return bare


def plain(partial: Any) -> Any:
    if isinstance(partial, np.ndarray):
        return tuple(partial.tolist())
    return tuple(map(plain, partial)) if isinstance(partial, tuple) else partial


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.FLOAT], ids=str)
@pytest.mark.parametrize("aggregate", CONSTANT, ids=repr)
def test_built_in_aggregates_obey_their_laws(aggregate: Constant, kind: Kind) -> None:
    r = random.Random(f"{aggregate!r} {kind}")
    draw = (lambda: r.randint(1, 9)) if kind is Kind.INTEGER else (lambda: r.randint(1, 36) / 4)
    # Times increase from event to event, as they do where `combine(a, b)` has a before b.
    events: list[dict[str, Any]] = [{"v": draw(), "w": draw(), TIME: t} for t in range(6)]
    (operator,) = aggregate.operators({"v": kind, "w": kind})
    if any(i.form == "hash" for i in operator.inputs):
        events = [{"v": np.uint64(r.getrandbits(64)), TIME: t} for t in range(6)]
    forms = {i.column: i.form for i in operator.inputs}
    for event, column in itertools.product(events, forms):
        if forms[column] == "float":
            event[column] = float(event[column])

    def combine(a: Any, b: Any) -> Any:
        arrays = [np.array(x, operator.components[0].dtype) for x in (a, b)]
        if operator.components[0].width is not None:
            return plain(operator.combine(*arrays))
        return plain(operator.combine(a, b))

    partials = [plain(partial_of(operator, event)) for event in events]
    start = operator.start()
    identity = plain(start[0] if operator.bare else start)
    for p in partials:
        assert alike(combine(identity, p), p)
        assert alike(combine(p, identity), p)
    for a, b, c in itertools.combinations(partials, 3):
        assert alike(combine(combine(a, b), c), combine(a, combine(b, c)))
    for a, b in itertools.combinations(partials, 2):
        if aggregate.laws.commutative:
            assert alike(combine(a, b), combine(b, a))
        if aggregate.laws.idempotent:
            assert alike(combine(a, a), a)


def test_laws_of_built_in_aggregates() -> None:
    assert A.max("v").laws == A.min("v").laws == Laws(idempotent=True)
    assert A.sum("v").laws == A.count().laws == Laws(invertible=True)
    assert not A.first("v").laws.commutative and not A.last("v").laws.commutative
    assert not A.max("v").laws.invertible
    assert A.median("v").laws.growing and A.median("v").laws.commutative
    assert A.collect("v").laws.order_sensitive and A.collect("v").laws.growing


def test_a_law_can_be_checked_by_itself() -> None:
    check_laws("sum", [1, 2, 3], lambda a, b: a + b, 0, commutative=True)
    with pytest.raises(pf.QueryError, match="minus"):
        check_laws("minus", [1, 2], lambda a, b: a - b, 0, commutative=True)
