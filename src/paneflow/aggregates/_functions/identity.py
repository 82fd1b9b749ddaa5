"""A digest of what a function computes, the same in every process.

Slices and checkpoints outlive the process that wrote them, and may only be merged with those of
the same functions. A function is described by its code and by every value that it reads: constants,
default values, captured and global variables, attributes of modules, and the functions it calls,
which are described in the same way. Addresses, file names and line numbers do not change what is
computed, and are left out. Functions of the standard library and of installed packages are
identified by their names. A value that cannot be described is refused: with a guess, slices of
different functions could be merged.

Bytecode changes with the minor version of Python, so the same function then has another digest.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import os
import site
import struct
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from paneflow.errors import UnsupportedError

READS = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_DEREF": "captured",
    "LOAD_CLASSDEREF": "captured",
    "IMPORT_NAME": "import",
}
NOT_DESCRIBED = frozenset(
    {
        "__annotations__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    }
)
"""Attributes of a class that do not change what it computes."""


def digest_of(what: str, given: Any) -> str:
    """The digest of functions and values; an error that begins with `what` if there is none.

    >>> digest_of("twice", lambda x: 2 * x) == digest_of("again", lambda x: 2 * x)
    True
    >>> digest_of("twice", lambda x: 2 * x) == digest_of("thrice", lambda x: 3 * x)
    False
    """
    describer = _Describer()
    try:
        describer.describe(given)
    except _CannotDescribe as reason:
        raise UnsupportedError(
            f"{what}: slices and checkpoints belong to functions that can be told apart, and this "
            f"one cannot: it reads {reason}; let it read numbers, text, arrays and functions"
        ) from reason.__cause__
    return describer.hash.hexdigest()[:12]


class _CannotDescribe(Exception):
    pass


class _Describer:
    """Feeds a hash with a description of values, each beginning with its kind and size."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._inside: list[int] = []

    def describe(self, value: Any) -> None:
        if id(value) in self._inside:  # a function that calls itself, a list that holds itself
            self._write("within", str(len(self._inside) - self._inside.index(id(value))))
            return
        self._inside.append(id(value))
        try:
            self._by_type(value)
        finally:
            self._inside.pop()

    def _write(self, kind: str, *texts: str | bytes) -> None:
        for text in (kind, *texts):
            data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            self.hash.update(struct.pack("<q", len(data)))
            self.hash.update(data)

    def _each(self, kind: str, values: Iterable[Any]) -> None:
        several = list(values)
        self._write(kind, str(len(several)))
        for value in several:
            self.describe(value)

    def _by_type(self, value: Any) -> None:
        kind = type(value)
        if value is None or value is Ellipsis or value is NotImplemented:
            self._write("constant", repr(value))
        elif kind in (bool, int, complex):
            self._write(kind.__name__, repr(value))
        elif kind is float:
            self._write("float", struct.pack("<d", value))
        elif kind in (str, bytes):
            self._write(kind.__name__, value)
        elif kind in (tuple, list):
            self._each(kind.__name__, value)
        elif kind in (set, frozenset):
            self._each("set", sorted(map(_digest_alone, value)))
        elif kind in (dict, types.MappingProxyType):
            self._each("dict", (part for item in value.items() for part in item))
        elif isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, types.CodeType):
            self._write("code", _code_alone(value))
        else:
            self._callable(value)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        self._write("array", array.dtype.str, repr(array.dtype.descr), repr(array.shape))
        if array.dtype.hasobject:
            self._each("objects", array.ravel().tolist())
        else:
            self._write("cells", array.tobytes())

    def code(self, code: types.CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._write("code", repr(counts), code.co_code, code.co_exceptiontable)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self._write("names", *names)
        self._each("constants", code.co_consts)

    def _callable(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            if _installed(value.__code__.co_filename):
                self._write("library", value.__module__ or "", value.__qualname__)
            else:
                self._function(value)
        elif isinstance(getattr(value, "py_func", None), types.FunctionType):
            self.describe(value.py_func)  # compiled by Numba
        elif isinstance(value, functools.partial):
            self._each("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            self._each("method", (value.__func__, value.__self__))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            self._write("builtin", value.__qualname__)
            owner = value.__self__
            self.describe(owner.__name__ if isinstance(owner, types.ModuleType) else owner)
        elif isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType):
            self._write("slot", value.__qualname__)
            self.describe(value.__objclass__)
        elif isinstance(value, np.ufunc):
            self._ufunc(value)
        elif isinstance(value, types.ModuleType):
            if not _installed_module(value.__name__):
                raise _CannotDescribe(f"the module {value.__name__!r} as a whole")
            self._write("module", value.__name__)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, staticmethod | classmethod):
            self._each(type(value).__name__, (value.__func__,))
        elif isinstance(value, property):
            self._each("property", (value.fget, value.fset, value.fdel))
        else:
            self._object(value)

    def _function(self, function: types.FunctionType) -> None:
        self._write("function")
        self.describe(function.__code__)
        self._each("defaults", (function.__defaults__, function.__kwdefaults__))
        for name, value in read_by(function):
            self._write("reads", name)
            self.describe(value)

    def _ufunc(self, ufunc: np.ufunc) -> None:
        if getattr(np, ufunc.__name__, None) is not ufunc:
            raise _CannotDescribe(f"the NumPy function {ufunc!r}, whose code is not at hand")
        self._write("ufunc", ufunc.__name__)

    def _class(self, class_: type) -> None:
        self._write("class", class_.__module__, class_.__qualname__)
        if not _installed_module(class_.__module__):
            self._each("bases", class_.__bases__)
            held = {k: v for k, v in vars(class_).items() if k not in NOT_DESCRIBED}
            slots = types.MemberDescriptorType | types.GetSetDescriptorType
            self.describe({k: v for k, v in sorted(held.items()) if not isinstance(v, slots)})

    def _object(self, value: Any) -> None:
        """Describe any other object by its class and by what pickle would keep of it."""
        try:
            kept = value.__reduce_ex__(2)
        except Exception as error:
            raise _CannotDescribe(
                f"an object of {type(value)!r}, which holds no plain data"
            ) from error
        self._write("object")
        self.describe(type(value))
        if isinstance(kept, str):
            self._write("name", kept)
            return
        make, arguments, state, items, pairs = (*kept, None, None, None)[:5]
        self._each("made", (make, arguments, state))
        self._each("items", [] if items is None else items)
        self._each("pairs", [] if pairs is None else pairs)


@functools.lru_cache(maxsize=4096)
def _code_alone(code: types.CodeType) -> bytes:
    """Code never changes, so its digest is computed once."""
    describer = _Describer()
    describer.code(code)
    return describer.hash.digest()


def _digest_alone(value: Any) -> bytes:
    """The members of a set have no order: they are sorted by their digests."""
    describer = _Describer()
    describer.describe(value)
    return describer.hash.digest()


def read_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The captured and global variables that a function reads, and what it reads of modules.

    A module that is not installed is described only by the attributes that are read from it.
    """
    names = function.__code__.co_freevars
    captured = dict(zip(names, function.__closure__ or (), strict=True))
    for kind, path in _paths(function.__code__):
        name, *attributes = path
        if kind == "import":
            value: Any = sys.modules.get(name) or importlib.import_module(name)
        elif kind == "captured":
            if name not in captured:
                continue  # a variable of the function itself, which one inside it captures
            value = _content(captured[name])
        else:
            # Built-in functions are identified by their names, and so is what is not set yet.
            value = function.__globals__.get(name, NotImplemented)
        while isinstance(value, types.ModuleType) and attributes and hasattr(value, attributes[0]):
            value = getattr(value, attributes.pop(0))
        yield ".".join(path), value


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return NotImplemented


@functools.lru_cache(maxsize=1024)
def _paths(code: types.CodeType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names that code reads, with the attributes it reads from them, inner functions included."""
    paths: dict[tuple[str, tuple[str, ...]], None] = {}
    kind, path = "", list[str]()
    for instruction in dis.get_instructions(code):
        if path and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path.append(instruction.argval)
            continue
        if path:
            paths[kind, tuple(path)] = None
        kind = READS.get(instruction.opname, "")
        path = [instruction.argval] if kind else []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            paths.update(dict.fromkeys(_paths(constant)))
    return tuple(paths)


@functools.cache
def _libraries() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {*map(sysconfig.get_path, names), *site.getsitepackages()}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


@functools.lru_cache(maxsize=1024)
def _installed(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return filename.startswith("<frozen") or os.path.realpath(filename).startswith(_libraries())


def _installed_module(name: str) -> bool:
    module = sys.modules.get(name)
    if name == "__main__" or module is None:
        return False
    file = getattr(module, "__file__", None)
    return _installed(file) if file else name in sys.builtin_module_names
