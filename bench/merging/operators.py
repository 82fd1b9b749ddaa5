"""The aggregates for measuring merge algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paneflow.aggregates import extremes, sketches
from paneflow.aggregates.operator import Component, Input, Operator
from paneflow.aggregates.values import Kind

FLOAT = (Component("value", "float64"),)


def maximum() -> Operator:
    """max over floats: the cheapest combine."""
    (operator,) = extremes.max("v").operators({"v": Kind.FLOAT})
    return operator


def maximum_of_int32() -> Operator:
    """max over a column of int32, as pandas and polars take it."""
    least = int(np.iinfo(np.int32).min)
    return Operator(
        "max",
        (Input("v"),),
        (Component("value", "int32"),),
        (least,),
        maximum().combine,
        maximum().lift,
        selective=True,
    )


def moments(k: int = 10) -> Operator:
    """The moment sketch: a row of 2k + 2 numbers."""
    (operator,) = sketches.moment_sketch("v", k=k).operators({"v": Kind.FLOAT})
    return operator


def bloom(bits: int) -> Operator:
    """A Bloom filter: a row of bits / 64 words."""
    (operator,) = sketches.bloom_filter("v", bits=bits).operators({"v": Kind.FLOAT})
    return operator


def _log_sum_exp(a, b):  # type: ignore[no-untyped-def]
    top = max(a, b)
    return top + math.log(math.exp(a - top) + math.exp(b - top))


def log_sum_exp() -> Operator:
    """The logarithm of a sum of exponentials: a number with an expensive combine."""
    return Operator("log_sum_exp", (Input("v"),), FLOAT, (-1e300,), _log_sum_exp)


def roots(rounds: int) -> Operator:
    """A number whose combine takes that many square roots, one after another."""
    combine = _roots(rounds)
    return Operator(f"roots_{rounds}", (Input("v"),), FLOAT, (0.0,), combine)


def _roots(rounds: int) -> Callable[[float, float], float]:
    def combine(a, b):  # type: ignore[no-untyped-def]
        r = max(a, b)
        for _ in range(rounds):
            r = math.sqrt(r * r + 1e-12)
        return r

    return combine
