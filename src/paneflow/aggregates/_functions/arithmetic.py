"""Python's arithmetic in machine code, with an error wherever the result would differ.

Compiled integers have 64 bits and silently wrap around, floats too large for an integer become
arbitrary ones, and functions of `math` return NaN where Python raises an exception. In users'
compiled functions, these operations replace the bare ones (`checking.py` puts them there). They
take int64, float64 and booleans, and raise what Python raises, or OverflowError where Python would
go on with a longer integer. For other numbers they refuse to be compiled; for anything that is not
a number they do what the bare operation does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

Emit = Callable[..., Any]
"""Writes the instructions of an operation: (context, builder, values) -> value."""

BIT, I64, F64 = ir.IntType(1), ir.IntType(64), ir.DoubleType()
BEYOND = 2.0**63
LEAVES = "an integer does not fit into int64: cast the column to float64, or compute with floats"
WHOLE = (types.int64, types.boolean)
NUMBERS = (*WHOLE, types.float64)


def _numbers(name: str, given: tuple[Any, ...], alone: bool) -> tuple[Any, ...] | None:
    """The types of numbers, booleans as integers; None if they are not numbers."""
    plain = tuple(map(types.unliteral, given))
    if all(kind in NUMBERS for kind in plain):
        return tuple(types.int64 if kind in WHOLE else kind for kind in plain)
    if alone or any(isinstance(kind, types.Number | types.Optional) for kind in plain):
        shown = ", ".join(map(str, plain))
        raise TypingError(f"{name} of {shown}: only int64, float64 and booleans can be checked")
    return None


def _bare(function: Any, kinds: tuple[Any, ...], typing: Any) -> tuple[Any, Emit]:
    """The type that a bare operation returns, and its instructions."""
    found = typing.resolve_value_type(function)
    signature = found.get_call_type(typing, kinds, {})
    if signature is None:
        raise TypingError(f"{function} takes no {', '.join(map(str, kinds))}")

    def emit(context: Any, builder: Any, values: Any) -> Any:
        cast = [
            context.cast(builder, value, kind, wanted)
            for value, kind, wanted in zip(values, kinds, signature.args, strict=True)
        ]
        return context.get_function(found, signature)(builder, cast)

    return signature.return_type, emit


def _typed(
    typing: Any,
    given: tuple[Any, ...],
    bare: Any,
    whole: Emit | None = None,
    around: Callable[[Emit], Emit] | None = None,
    alone: bool = False,
    floats: bool = False,
) -> tuple[Any, Any]:
    """What an intrinsic returns; `whole` is for integers, `around` checks the other operations.

    With `alone` only numbers are accepted; with `floats` all numbers become floats first.
    """
    kinds = _numbers(bare.__name__, given, alone)
    if kinds is None:
        kinds = given
        result, emit = _bare(bare, kinds, typing)
    elif whole is not None and all(kind is types.int64 for kind in kinds):
        result, emit = types.int64, whole
    else:
        kinds = (types.float64,) * len(kinds) if floats else kinds
        result, emit = _bare(bare, kinds, typing)
        emit = around(emit) if around is not None else emit

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        cast = [
            context.cast(builder, value, kind, wanted)
            for value, kind, wanted in zip(values, signature.args, kinds, strict=True)
        ]
        return emit(context, builder, cast)

    return result(*given), codegen


def _fail(context: Any, builder: Any, when: Any, kind: type, text: str) -> None:
    with builder.if_then(when, likely=False):
        context.call_conv.return_user_exc(builder, kind, (text,))


def _one(name: str, bare: Any, whole: Emit | None = None, **options: Any) -> Any:
    def operation(typing, x):  # type: ignore[no-untyped-def]
        return _typed(typing, (x,), bare, whole, **options)

    operation.__name__ = name
    return intrinsic(operation)


def _two(name: str, bare: Any, whole: Emit | None = None, **options: Any) -> Any:
    def operation(typing, a, b):  # type: ignore[no-untyped-def]
        return _typed(typing, (a, b), bare, whole, **options)

    operation.__name__ = name
    return intrinsic(operation)


# Integers.


def _with_overflow(instruction: str) -> Emit:
    def emit(context: Any, builder: Any, values: Any) -> Any:
        both = getattr(builder, instruction)(*values)
        _fail(context, builder, builder.extract_value(both, 1), OverflowError, LEAVES)
        return builder.extract_value(both, 0)

    return emit


def _divide(bare: Any) -> Emit:
    def emit(context: Any, builder: Any, values: Any) -> Any:
        a, b = values
        zero = builder.icmp_signed("==", b, I64(0))
        _fail(context, builder, zero, ZeroDivisionError, "integer division or modulo by zero")
        if bare is operator.floordiv:
            least = builder.icmp_signed("==", a, I64(-(2**63)))
            wraps = builder.and_(least, builder.icmp_signed("==", b, I64(-1)))
            _fail(context, builder, wraps, OverflowError, LEAVES)
        kinds = (types.int64, types.int64)
        return _bare(bare, kinds, context.typing_context)[1](context, builder, values)

    return emit


def _shift_left(context: Any, builder: Any, values: Any) -> Any:
    a, by = values
    _fail_negative(context, builder, by)
    far = builder.icmp_signed(">=", by, I64(64))
    shifted = builder.shl(a, builder.select(far, I64(63), by))
    back = builder.ashr(shifted, builder.select(far, I64(63), by))
    lost = builder.or_(far, builder.icmp_signed("!=", back, a))
    lost = builder.and_(lost, builder.icmp_signed("!=", a, I64(0)))
    _fail(context, builder, lost, OverflowError, LEAVES)
    return shifted


def _shift_right(context: Any, builder: Any, values: Any) -> Any:
    a, by = values
    _fail_negative(context, builder, by)
    far = builder.icmp_signed(">=", by, I64(64))
    return builder.ashr(a, builder.select(far, I64(63), by))


def _fail_negative(context: Any, builder: Any, by: Any) -> None:
    negative = builder.icmp_signed("<", by, I64(0))
    _fail(context, builder, negative, ValueError, "negative shift count")


def _negative(context: Any, builder: Any, values: Any) -> Any:
    return _with_overflow("ssub_with_overflow")(context, builder, (I64(0), values[0]))


def _absolute(context: Any, builder: Any, values: Any) -> Any:
    (x,) = values
    least = builder.icmp_signed("==", x, I64(-(2**63)))
    _fail(context, builder, least, OverflowError, LEAVES)
    return builder.select(builder.icmp_signed("<", x, I64(0)), builder.neg(x), x)


def _same(context: Any, builder: Any, values: Any) -> Any:
    return values[0]


def _inverted(context: Any, builder: Any, values: Any) -> Any:
    return builder.not_(values[0])


# Floats that become infinite or NaN, and floats that become integers.


def _not_finite(builder: Any, value: Any) -> Any:
    return builder.fcmp_unordered("uno", builder.fsub(value, value), F64(0.0))


def _is_nan(builder: Any, value: Any) -> Any:
    return builder.fcmp_unordered("uno", value, value)


def _real(pole: type, text: str) -> Callable[[Emit], Emit]:
    """Around a function of floats: NaN from numbers, or infinity from finite ones, is an error."""

    def around(emit: Emit) -> Emit:
        def checked(context: Any, builder: Any, values: Any) -> Any:
            result = emit(context, builder, values)
            with builder.if_then(_not_finite(builder, result), likely=False):
                no_nan, finite = BIT(1), BIT(1)
                for value in values:
                    no_nan = builder.and_(no_nan, builder.not_(_is_nan(builder, value)))
                    finite = builder.and_(finite, builder.not_(_not_finite(builder, value)))
                nan = _is_nan(builder, result)
                _fail(context, builder, builder.and_(nan, no_nan), ValueError, "math domain error")
                infinite = builder.and_(builder.not_(nan), finite)
                _fail(context, builder, infinite, pole, text)
            return result

        return checked

    return around


def _fits(emit: Emit) -> Emit:
    """Around a function that makes an integer of a float."""

    def checked(context: Any, builder: Any, values: Any) -> Any:
        (x,) = values
        if x.type == F64:
            nan = _is_nan(builder, x)
            _fail(context, builder, nan, ValueError, "cannot convert float NaN to integer")
            below = builder.fcmp_ordered("<", x, F64(-BEYOND))
            beyond = builder.or_(below, builder.fcmp_ordered(">=", x, F64(BEYOND)))
            _fail(context, builder, beyond, OverflowError, LEAVES)
        return emit(context, builder, values)

    return checked


# An integer is compared with a float by value, without rounding the integer first.

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _compare(sign: str) -> Callable[[Emit], Emit]:
    def around(emit: Emit) -> Emit:
        def checked(context: Any, builder: Any, values: Any) -> Any:
            a, b = values
            if a.type == b.type:
                return emit(context, builder, values)
            if a.type == I64:
                return _compared(builder, a, b, sign)
            return _compared(builder, b, a, MIRRORED[sign])

        return checked

    return around


def _compared(builder: Any, whole: Any, real: Any, sign: str) -> Any:
    nan = _is_nan(builder, real)
    above = builder.fcmp_ordered(">=", real, F64(BEYOND))
    below = builder.fcmp_ordered("<", real, F64(-BEYOND))
    outside = builder.or_(nan, builder.or_(above, below))
    inside = builder.select(outside, F64(0.0), real)
    integer = builder.fptosi(inside, I64)
    rest = builder.fsub(inside, builder.sitofp(integer, F64))
    level = builder.icmp_signed("==", whole, integer)
    less = builder.or_(
        builder.icmp_signed("<", whole, integer),
        builder.and_(level, builder.fcmp_ordered(">", rest, F64(0.0))),
    )
    less = builder.or_(above, builder.and_(builder.not_(outside), less))
    equal = builder.and_(level, builder.fcmp_ordered("==", rest, F64(0.0)))
    equal = builder.and_(builder.not_(outside), equal)
    more = builder.not_(builder.or_(nan, builder.or_(less, equal)))
    parts = {"<": less, ">": more, "==": equal}
    if sign in parts:
        return parts[sign]
    return builder.not_(equal) if sign == "!=" else builder.or_(parts[sign[0]], equal)


# Powers.


def _repeated(a: Any, n: Any) -> Any:
    """A power by squaring; compiled as a part of `whole_power`."""
    result = 1
    while n > 0:
        if n & 1:
            result = mult(result, a)
        n >>= 1
        if n > 0:
            a = mult(a, a)
    return result


def _whole_power(context: Any, builder: Any, values: Any) -> Any:
    signature = types.int64(types.int64, types.int64)
    return context.compile_internal(builder, _repeated, signature, values)


def _power(emit: Emit) -> Emit:
    def checked(context: Any, builder: Any, values: Any) -> Any:
        base, exponent = values
        zero = builder.fcmp_ordered("==", base, F64(0.0))
        # An exponent of minus infinity gives infinity, in Python too.
        finite = builder.fcmp_ordered(">", exponent, F64(-math.inf))
        negative = builder.fcmp_ordered("<", exponent, F64(0.0))
        pole = builder.and_(zero, builder.and_(finite, negative))
        text = "0.0 cannot be raised to a negative power"
        _fail(context, builder, pole, ZeroDivisionError, text)
        return RANGE(emit)(context, builder, values)

    return checked


def _refused(context: Any, builder: Any, values: Any) -> Any:
    raise TypingError("a power of two integers is a float if the second is negative")


RANGE = _real(OverflowError, "math range error")
POLE = _real(ValueError, "math domain error")

add = _two("add", operator.add, _with_overflow("sadd_with_overflow"))
sub = _two("sub", operator.sub, _with_overflow("ssub_with_overflow"))
mult = _two("mult", operator.mul, _with_overflow("smul_with_overflow"))
floordiv = _two("floordiv", operator.floordiv, _divide(operator.floordiv))
mod = _two("mod", operator.mod, _divide(operator.mod))
lshift = _two("lshift", operator.lshift, _shift_left)
rshift = _two("rshift", operator.rshift, _shift_right)
power = _two("power", operator.pow, _refused, around=_power, alone=True, floats=True)
whole_power = _two(
    "whole_power", operator.pow, _whole_power, around=_power, alone=True, floats=True
)
usub = _one("usub", operator.neg, _negative)
uadd = _one("uadd", operator.pos, _same)
invert = _one("invert", operator.invert, _inverted)
absolute = _one("absolute", abs, _absolute)
whole = _one("whole", int, _same, around=_fits, alone=True)
rounded = _one("rounded", round, _same, around=_fits, alone=True)
lt = _two("lt", operator.lt, around=_compare("<"))
lte = _two("lte", operator.le, around=_compare("<="))
gt = _two("gt", operator.gt, around=_compare(">"))
gte = _two("gte", operator.ge, around=_compare(">="))
eq = _two("eq", operator.eq, around=_compare("=="))
noteq = _two("noteq", operator.ne, around=_compare("!="))

POLES = ("log", "log2", "log10", "log1p", "atanh", "lgamma", "gamma")
REAL = (
    *("sqrt", "exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "erf", "erfc", "fabs", "degrees", "radians"),
)
MATH: dict[str, Any] = {
    **{
        name: _one(name, getattr(math, name), around=POLE, alone=True, floats=True)
        for name in POLES
    },
    **{
        name: _one(name, getattr(math, name), around=RANGE, alone=True, floats=True)
        for name in REAL
    },
    **{
        name: _two(name, getattr(math, name), around=RANGE, alone=True, floats=True)
        for name in ("atan2", "hypot", "pow", "copysign")
    },
    **{
        name: _one(name, getattr(math, name), _same, around=_fits, alone=True)
        for name in ("floor", "ceil", "trunc")
    },
}
"""What stands for the functions of `math`, as attributes `math_log` and so on."""
globals().update({f"math_{name}": operation for name, operation in MATH.items()})
