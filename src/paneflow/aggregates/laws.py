"""The laws of an aggregate, which decide what a planner may do with it.

Laws are declared. What a user declares is checked on samples, and a declaration that a sample
contradicts is refused together with that sample: an aggregate that breaks its laws would return
different rows on different engines.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paneflow.errors import QueryError


@dataclass(frozen=True)
class Laws:
    """What holds for `combine`, apart from associativity.

    Attributes:
        commutative: The order of partials does not matter.
        invertible: A part can be removed from a partial again.
        idempotent: A partial combined with itself stays the same.
        order_sensitive: The result depends on the order of events.
        growing: Partials have no fixed size (holistic aggregates).

    Example:
        >>> from paneflow import aggregates as A
        >>> print(A.max("load").laws)
        associative, commutative, idempotent
    """

    commutative: bool = True
    invertible: bool = False
    idempotent: bool = False
    order_sensitive: bool = False
    growing: bool = False

    @property
    def in_order(self) -> bool:
        """Whether events have to be combined in order."""
        return self.order_sensitive or not self.commutative

    def __str__(self) -> str:
        held = [name for name, value in vars(self).items() if value]
        return ", ".join(["associative", *held]).replace("_", "-")


def check_laws(
    what: str,
    partials: Sequence[Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    *,
    commutative: bool,
    idempotent: bool = False,
    invert: Callable[[Any, Any], Any] | None = None,
) -> None:
    """Refuse `combine` if one of the sample partials contradicts a law it must obey.

    >>> check_laws("minus", [1.0, 2.0], lambda a, b: a - b, 0.0, commutative=True)
    Traceback (most recent call last):
    ...
    paneflow.errors.QueryError: minus: combine is not commutative: combine(1.0, 2.0) = -1.0 but \
combine(2.0, 1.0) = 1.0; pass commutative=False, or correct combine
    """
    check_shape(what, partials, identity)

    def merged(a: Any, b: Any) -> Any:
        before = _copied(a), _copied(b)
        result = _run(what, "combine", combine, a, b)
        for given, kept in zip((a, b), before, strict=True):
            if not alike(given, kept):
                raise QueryError(
                    f"{what}: combine changes its argument {kept!r} to {given!r}, but partials are "
                    f"shared by windows: let it return a new one"
                )
        return result

    def same(law: str, left: tuple[str, Any], right: tuple[str, Any], advice: str) -> None:
        if not alike(left[1], right[1]):
            raise QueryError(
                f"{what}: combine is not {law}: {left[0]} = {left[1]!r} but "
                f"{right[0]} = {right[1]!r}; {advice}"
            )

    for a, b in itertools.combinations(partials, 2):
        if commutative:
            same(
                "commutative",
                (f"combine({a!r}, {b!r})", merged(a, b)),
                (f"combine({b!r}, {a!r})", merged(b, a)),
                "pass commutative=False, or correct combine",
            )
        if invert is not None:
            same(
                "undone by invert",
                (
                    f"invert(combine({a!r}, {b!r}), {a!r})",
                    _run(what, "invert", invert, merged(a, b), a),
                ),
                ("the other partial", b),
                "correct invert(whole, part), or leave it out",
            )
    for a, b, c in itertools.islice(itertools.permutations(partials, 3), 60):
        same(
            "associative",
            (f"combine(combine({a!r}, {b!r}), {c!r})", merged(merged(a, b), c)),
            (f"combine({a!r}, combine({b!r}, {c!r}))", merged(a, merged(b, c))),
            "windows are merged from slices in any grouping, so combine must be associative",
        )
    for a in partials:
        if idempotent:
            same(
                "idempotent",
                (f"combine({a!r}, {a!r})", merged(a, a)),
                ("the partial itself", a),
                "pass idempotent=False, or correct combine",
            )
        # Some merges put the identity before a partial, some behind it.
        for left, right in ((identity, a), (a, identity)):
            same(
                "neutral on the identity",
                (f"combine({left!r}, {right!r})", merged(left, right)),
                ("the partial itself", a),
                "pass an identity that changes nothing when combined",
            )


def check_shape(what: str, partials: Sequence[Any], identity: Any) -> None:
    """Refuse partials that do not have the shape of the identity."""

    def shape(partial: Any) -> int | None:
        return len(partial) if isinstance(partial, tuple) else None

    if shape(identity) == 0:
        raise QueryError(f"{what}: the identity is (), a partial of no values: give at least one")
    for partial in partials:
        if shape(partial) != shape(identity):
            raise QueryError(
                f"{what}: the identity {identity!r} and the partial {partial!r} have different "
                f"shapes: give both the same number of values"
            )
    if shape(identity) == 1:
        raise QueryError(f"{what}: a partial of one value is given bare, not as a tuple")


def _copied(partial: Any) -> Any:
    """A copy of a partial, to see whether combine changes its arguments."""
    try:
        return copy.deepcopy(partial)
    except Exception:  # what cannot be copied is used as it is
        return partial


def _run(what: str, role: str, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        return function(a, b)
    except Exception as error:
        raise QueryError(
            f"{what}: {role} fails on samples: {role}({a!r}, {b!r}): "
            f"{type(error).__name__}: {error}; pass samples=[...] of values that the column "
            f"holds, or correct {role} and identity"
        ) from error


def alike(a: Any, b: Any) -> bool:
    """Whether two partials are equal, apart from the last bits of floats."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        cells = np.asarray(a).ravel().tolist(), np.asarray(b).ravel().tolist()
        return np.shape(a) == np.shape(b) and all(map(alike, *cells))
    if isinstance(a, float) or isinstance(b, float):
        try:
            x, y = float(a), float(b)
        except (TypeError, ValueError, OverflowError):
            return False
        if x != x or y != y:
            return x != x and y != y
        return x == y or math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-9)
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # tables and their columns are neither equal nor not
        return False
