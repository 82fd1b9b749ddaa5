"""Rewrites a user's function so that compiled code does what Python does, or raises an error.

Operators become calls to `arithmetic.py`, and so do functions whose compiled versions differ from
Python's. If something has no checked version, the function is refused with a reason, and runs as
plain Python.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Mapping
from typing import Any

from paneflow.aggregates._functions import arithmetic

MODULE = "paneflow_checked"
"""The name of `arithmetic.py` in generated code."""
PREAMBLE = f"""import numba
from paneflow.aggregates._functions import arithmetic as {MODULE}

users = numba.njit(nogil=True, boundscheck=True)
"""
BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mult",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.Pow: "power",
}
UNARY = {ast.USub: "usub", ast.UAdd: "uadd", ast.Invert: "invert"}
COMPARED = {
    ast.Lt: "lt",
    ast.LtE: "lte",
    ast.Gt: "gt",
    ast.GtE: "gte",
    ast.Eq: "eq",
    ast.NotEq: "noteq",
}
BUILTIN = {abs: "absolute", int: "whole", round: "rounded", pow: "power"}
HARMLESS = (min, max, len, range, float, bool, zip, enumerate, isinstance, tuple, list, any, all)
PASSED = ("isnan", "isinf", "isfinite")
"""Functions of `math` that do the same when compiled."""


class Unchecked(Exception):
    """Why compiled code might not do what Python does."""


def checked(node: ast.FunctionDef, values: Mapping[str, Any], bound: set[str]) -> ast.FunctionDef:
    """The function with checked operations; `values` are those of the global names it reads.

    Names in `bound` are its own variables.
    """
    made = _Checking(values, bound).visit(node)
    assert isinstance(made, ast.FunctionDef)
    return made


def check_constant(value: Any) -> None:
    """Refuse integers that compiled code cannot hold."""
    for cell in value if type(value) is tuple else (value,):
        if type(cell) is int and not -(2**63) <= cell < 2**63:
            raise Unchecked(f"it reads {cell}, which does not fit into int64")


class _Checking(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, Any], bound: set[str]) -> None:
        self._values = values
        self._bound = bound

    def _meant(self, node: ast.expr) -> Any:
        """What a name or an attribute of `math` stands for; None if unknown."""
        if isinstance(node, ast.Name) and node.id not in self._bound:
            return self._values.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            return getattr(math, node.attr, None) if self._meant(node.value) is math else None
        return None

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _binary(node.op, node.left, node.right) or node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if type(node.op) not in BINARY:
            return node
        if not isinstance(node.target, ast.Name):
            raise Unchecked(f"it changes {ast.unparse(node.target)} in place")
        before = ast.Name(node.target.id, ast.Load())
        value = _binary(node.op, before, node.value)
        assert value is not None
        return ast.Assign([node.target], value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if isinstance(node.operand.value, int) and node.operand.value > 2**63:
                raise Unchecked(f"-{node.operand.value} does not fit into int64")
            return node
        self.generic_visit(node)
        name = UNARY.get(type(node.op))
        return node if name is None else _call(name, node.operand)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, int) and not -(2**63) <= node.value < 2**63:
            raise Unchecked(f"{node.value} does not fit into int64")
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        parts: list[ast.expr] = []
        for op, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            name = COMPARED.get(type(op))
            parts.append(_call(name, left, right) if name else ast.Compare(left, [op], [right]))
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        meant = self._meant(node.func)
        if isinstance(node.func, ast.Name | ast.Attribute) and meant is not None:
            name = self._checked_name(meant, node)
            if name is not None:
                node.func = ast.Attribute(ast.Name(MODULE, ast.Load()), name, ast.Load())
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _checked_name(self, meant: Any, node: ast.Call) -> str | None:
        """What is called in place of a function; None if it is called itself."""
        name = getattr(meant, "__name__", "")
        if getattr(meant, "__module__", None) == "math" and callable(meant):
            if name in PASSED:
                return None
            if name not in arithmetic.MATH:
                raise Unchecked(f"math.{name} may give something else when compiled")
            return f"math_{name}"
        if getattr(builtins, name, None) is not meant or meant in HARMLESS:
            return None
        if isinstance(meant, type) and issubclass(meant, BaseException):
            return None
        if meant not in BUILTIN or len(node.args) != (2 if meant is pow else 1):
            raise Unchecked(f"{ast.unparse(node)} may give something else when compiled")
        return BUILTIN[meant]


def _binary(op: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr | None:
    name = BINARY.get(type(op))
    if name is None:
        return None
    if (
        name == "power"
        and isinstance(right, ast.Constant)
        and isinstance(right.value, int)
        and right.value >= 0
    ):
        name = "whole_power"
    return _call(name, left, right)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name(MODULE, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), [])
