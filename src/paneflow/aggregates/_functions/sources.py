"""The source text of functions and of everything they refer to, so that kernels can be kept.

Compiled code can be found again only by the text it was made from. So functions are written out
again, each under the name of its role. Globals, captured variables and default values are written
before it as constants or functions, under names that the loops around them do not use. Text is
used only if it compiles to exactly the code of the function. So a file that was edited after it was
imported, or a decorated function, is never mistaken for the function itself.
"""

from __future__ import annotations
import __future__

import ast
import copy
import dis
import functools
import inspect
import linecache
import math
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from paneflow.aggregates._functions.checking import PREAMBLE, Unchecked, check_constant, checked
from paneflow.aggregates._functions.identity import digest_of

_PARSING = threading.Lock()
IMPORTED = {"math": math, "np": np}
"""Modules that every kernel imports."""
MOST = 4096
"""How many definitions of functions are remembered."""
LARGEST = 1 << 16
"""Bytes of an array up to which it is written out as a constant."""


def functions_text(
    functions: dict[str, Callable[..., Any]], *, checked: bool = False
) -> str | None:
    """The source of functions under new names, with what they refer to; None if there is none.

    With `checked`, operations raise an error where compiled code would not do what Python does;
    `Unchecked` is raised if an operation has no such version.

    >>> print(functions_text({"combine": lambda a, b: a + b}))
    @helper
    def combine(a, b):
        return a + b
    <BLANKLINE>
    <BLANKLINE>
    """
    exporter = _Exporter(checked)
    try:
        # Python 3.11 fails now and then when two threads parse at once.
        with _PARSING:
            for name, function in functions.items():
                exporter.function(function, name)
    except (_CannotExport, SyntaxError) as reason:
        if checked:
            raise Unchecked(str(reason)) from None
        return None
    return (PREAMBLE if checked else "") + "".join(exporter.parts)


def python_function(function: Any) -> types.FunctionType | None:
    """The plain Python function in what a user gave, be it compiled already; None if there is none.

    >>> python_function(max) is None
    True
    """
    inner = getattr(function, "py_func", function)
    return inner if isinstance(inner, types.FunctionType) else None


class _CannotExport(Exception):
    pass


class _Exporter:
    """Collects the text of functions and, before each, of everything it refers to."""

    def __init__(self, checked: bool) -> None:
        self._checked = checked
        self.parts: list[str] = []
        self.taken: dict[str, Any] = {}

    def function(self, given: Any, name: str) -> None:
        function = python_function(given)
        if function is None:
            raise _CannotExport(f"{given!r} is not a function written in Python")
        node = copy.deepcopy(_definition(function))
        values = dict(_references(function))
        bound = _bound(node)
        if bound & values.keys():
            # An inner function has a variable of the same name.
            raise _CannotExport(f"it has two variables {min(bound & values.keys())!r}")
        if self._checked:
            node = checked(node, values, bound)
            values = {key: value for key, value in values.items() if key in _read(node)}
        names = {key: self._reference(key, value) for key, value in values.items()}
        _Renaming(names).visit(node)
        node.args.defaults = [_literal(value) for value in function.__defaults__ or ()]
        by_keyword = function.__kwdefaults__ or {}
        node.args.kw_defaults = [
            _literal(by_keyword[a.arg]) if a.arg in by_keyword else None
            for a in node.args.kwonlyargs
        ]
        node.name = name
        node.decorator_list = [ast.Name("users" if self._checked else "helper", ast.Load())]
        node.returns = None
        for argument in (*node.args.args, *node.args.posonlyargs, *node.args.kwonlyargs):
            argument.annotation = None
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            node.body = node.body[1:]
        self.parts.append(ast.unparse(ast.fix_missing_locations(node)) + "\n\n")

    def _reference(self, key: str, value: Any) -> str:
        """Write what a name stands for, once, and return the name under which it is written."""
        if self._checked:
            check_constant(value)
        if IMPORTED.get(key) is value:
            return key
        name = f"given_{key}"
        while name in self.taken and self.taken[name] is not value:
            name += "_"
        if name in self.taken:
            return name
        self.taken[name] = value
        if isinstance(value, types.ModuleType):
            self.parts.append(f"import {value.__name__} as {name}\n")
        elif isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
            self.parts.append(f"from math import {value.__name__} as {name}\n")
        elif python_function(value) is not None:
            self.function(value, name)
        else:
            try:
                self.parts.append(f"{name} = {ast.unparse(_literal(value))}\n")
            except _CannotExport as reason:
                raise _CannotExport(f"it reads {key!r}, {reason}") from None
        return name


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def _literal(value: Any) -> ast.expr:
    """An expression whose value is a constant, in its type."""
    if type(value) is tuple:
        return ast.Tuple([_literal(v) for v in value], ast.Load())
    if isinstance(value, np.ndarray):
        return _array_literal(value)
    if isinstance(value, np.bool_ | np.integer | np.floating):
        inner = ast.unparse(_literal(value.item()))
        return ast.parse(f"np.{value.dtype.name}({inner})", mode="eval").body
    if type(value) is float and not math.isfinite(value):
        return ast.parse(f"{'-' if value < 0 else ''}math.{abs(value)!r}", mode="eval").body
    if type(value) in (bool, int, float, str, types.NoneType):
        return ast.parse(repr(value), mode="eval").body
    raise _CannotExport(f"a {type(value).__name__}, which compiled code cannot hold")


def _array_literal(array: np.ndarray[Any, Any]) -> ast.expr:
    if array.dtype.kind not in "biuf" or not 0 < array.nbytes <= LARGEST:
        kind = f"of {array.nbytes} bytes of {array.dtype}"
        raise _CannotExport(f"an array {kind}, which compiled code cannot hold as a constant")
    cells = f"np.frombuffer(bytes.fromhex({array.tobytes().hex()!r}), {array.dtype.str!r})"
    return ast.parse(f"{cells}.reshape({array.shape!r})", mode="eval").body


def _references(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The captured and the global variables that a function reads, inner functions included."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not set yet
            raise _CannotExport(f"it reads {name!r}, which is not set") from None
    read = {
        instruction.argval: None
        for code in _codes(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "LOAD_GLOBAL"
    }
    for name in read:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _bound(node: ast.AST) -> set[str]:
    """Names that are given a value somewhere in a function."""
    bound = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            bound.add(inner.arg)
        elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            bound.add(inner.id)
        elif isinstance(inner, ast.FunctionDef) and inner is not node:
            bound.add(inner.name)
    return bound


def _read(node: ast.AST) -> set[str]:
    """Names that are read somewhere in a function."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _text_around(function: types.FunctionType) -> str:
    """The file, notebook cell or example in which a function stands; empty if unknown."""
    filename = function.__code__.co_filename
    linecache.checkcache(filename)
    return "".join(linecache.getlines(filename, function.__globals__))


_definitions: dict[types.CodeType, ast.FunctionDef | None] = {}
"""The definitions found for code: a file is read and parsed once for each of its functions."""


def _definition(function: types.FunctionType) -> ast.FunctionDef:
    """The node of a function; a lambda becomes a function of one statement."""
    code = function.__code__
    if code not in _definitions:
        if len(_definitions) >= MOST:
            _definitions.clear()
        try:
            _definitions[code] = _find_definition(code, _text_around(function))
        except (_CannotExport, SyntaxError):
            _definitions[code] = _sent_definition(code)
    found = _definitions[code]
    if found is None:
        raise _CannotExport(f"the source of {function.__qualname__} cannot be read")
    return found


_sent: dict[str, str] = {}
"""The text of functions that another process has sent, by their code's digest."""


def texts_of(*functions: Any) -> dict[str, str]:
    """The text of functions and of those they call, for a process without their files."""
    texts: dict[str, str] = {}
    left = [python_function(given) for given in functions]
    while left:
        function = left.pop()
        if function is None or (digest := _code_digest(function.__code__)) in texts:
            continue
        try:
            with _PARSING:
                texts[digest] = ast.unparse(_definition(function))
            left += [python_function(value) for _, value in _references(function)]
        except _CannotExport:
            continue
    return texts


def remember_texts(texts: dict[str, str]) -> None:
    """Remember the texts of functions that another process has sent."""
    _sent.update(texts)


def _sent_definition(code: types.CodeType) -> ast.FunctionDef | None:
    text = _sent.get(_code_digest(code)) if _sent else None
    node = ast.parse(text).body[0] if text else None
    return node if isinstance(node, ast.FunctionDef) else None


def _code_digest(code: types.CodeType) -> str:
    return digest_of(code.co_name, code)


def _find_definition(code: types.CodeType, source: str) -> ast.FunctionDef:
    # Examples and notebook cells inherit this flag, which then is not in their text.
    flags = code.co_flags & __future__.annotations.compiler_flag
    tree, codes = _parsed_alone(source, code.co_firstlineno, flags)
    if code not in codes:
        tree, codes = _parsed(source, flags)
    if code not in codes:
        raise _CannotExport
    on_line = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and _first_line(node) == code.co_firstlineno
    ]
    if code.co_name != "<lambda>":
        for node in on_line:
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                return node
        raise _CannotExport
    bodies = [(n.body, n) for n in on_line if isinstance(n, ast.Lambda) and _holds(n.body, code)]
    # Of lambdas within each other, the innermost that holds all of the code.
    innermost = [n for body, n in bodies if not any(_within(b, body) for b, _ in bodies)]
    if len(innermost) != 1:
        raise _CannotExport
    found = innermost[0]
    shell = ast.parse("def anonymous(): pass").body[0]
    assert isinstance(shell, ast.FunctionDef)
    shell.args, shell.body = found.args, [ast.Return(found.body)]
    return shell


Parsed = tuple[ast.Module, frozenset[types.CodeType]]
"""A text's tree, and the code of all functions in it."""


def _parsed_alone(source: str, line: int, flags: int) -> Parsed:
    """The function that begins in a line, without the rest of its file, if it is not indented.

    Our own files have hundreds of lines: parsing those that the README's example needs took 15 ms
    in every process, and the garbage collection that followed 50 ms.
    """
    lines = source.splitlines(keepends=True)[line - 1 :]
    if not lines or not lines[0].startswith(("def ", "@")):
        return ast.Module([], []), frozenset()
    try:
        # Code is equal only if it stands in the same line.
        return _parsed("\n" * (line - 1) + "".join(inspect.getblock(lines)), flags)
    except SyntaxError:
        return ast.Module([], []), frozenset()


@functools.lru_cache(maxsize=8)
def _parsed(source: str, flags: int) -> Parsed:
    whole = compile(source, "<source>", "exec", flags, dont_inherit=True)
    return ast.parse(source), frozenset(_codes(whole))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A piece of code and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _first_line(node: ast.FunctionDef | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def _span(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    end_line, end_column = node.end_lineno, node.end_col_offset
    assert end_line is not None and end_column is not None
    return (node.lineno, node.col_offset), (end_line, end_column)


def _holds(body: ast.expr, code: types.CodeType) -> bool:
    """Whether all instructions come from within an expression."""
    start, end = _span(body)
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        # Instructions that no text stands for have an empty span.
        if (line, column) != (end_line, end_column) and not (
            start <= (line, column) and (end_line, end_column) <= end
        ):
            return False
    return True


def _within(inner: ast.expr, outer: ast.expr) -> bool:
    (inner_start, inner_end), (start, end) = _span(inner), _span(outer)
    return inner is not outer and start <= inner_start and inner_end <= end
