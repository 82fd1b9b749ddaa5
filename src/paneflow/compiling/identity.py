"""A digest of everything that a function's machine code is made from.

That is its bytecode, the constants and functions it names, and the functions they name in turn,
in whatever file they stand. Bytecode rather than text, so that a comment changes nothing and no
source has to be found. A plain Python function is only a stand-in for what Numba was told to
compile in its place, somewhere in its module: then everything in the module counts.
"""

from __future__ import annotations

import hashlib
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype)


def identity(dispatcher: Any) -> str:
    """A digest of a compiled function, its options, and all that it calls."""
    reader = _Reader()
    reader.value(dispatcher)
    return reader.digest.hexdigest()


class _Reader:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._seen: set[int] = set()

    def say(self, *words: object) -> None:
        # The lengths keep neighbours apart.
        for word in words:
            text = repr(word).encode()
            self.digest.update(b"%d:%s" % (len(text), text))

    def value(self, value: Any) -> None:
        """Something that a function names."""
        if isinstance(value, PLAIN):
            self.say(type(value).__name__, value)
        elif isinstance(value, tuple):
            self.say(type(value).__name__, len(value))
            for each in value:
                self.value(each)
        elif isinstance(value, frozenset):
            self.say("frozenset", *sorted(map(repr, value)))
        elif isinstance(value, np.ndarray):
            self.say("array", value.dtype, value.shape, value.tobytes())
        elif isinstance(value, CodeType):
            self.code(value)
        elif isinstance(value, Dispatcher):
            self.say(sorted(value.targetoptions.items()))
            self.function(value.py_func)
        elif isinstance(value, ModuleType):
            self.module(value.__name__)
        elif isinstance(value, type):
            self.type(value)
        else:
            name = getattr(value, "__name__", type(value).__qualname__)
            self.say(getattr(value, "__module__", None), name)
            self.module(getattr(value, "__module__", None))

    def function(self, function: FunctionType) -> None:
        if self._known(function):
            return
        self.say(function.__module__, function.__qualname__)
        self.code(function.__code__)
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for cell in function.__closure__ or ():
            self.value(cell.cell_contents)
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            self.say(name)
            self.value(function.__globals__[name])

    def code(self, code: CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.say(code.co_code, counts, code.co_names, code.co_varnames)
        self.say(code.co_freevars, code.co_cellvars)
        self.value(code.co_consts)

    def type(self, kind: type) -> None:
        self.say(kind.__module__, kind.__qualname__)
        if _is_ours(kind.__module__) and not self._known(kind):
            self.say(getattr(kind, "_fields", ()))
            self.functions(kind.__module__, vars(kind))

    def module(self, name: str | None) -> None:
        if name is None or not _is_ours(name):
            return
        module = sys.modules[name]
        if not self._known(module):
            self.say(name)
            self.functions(name, vars(module))

    def functions(self, module: str, space: Any) -> None:
        """All functions of a module or class that are its own."""
        for name, value in sorted(space.items()):
            own = getattr(value, "__module__", None) == module
            # What stands for generated instructions holds the function that writes them.
            function = getattr(value, "_defn", value)
            if isinstance(function, FunctionType) and own:
                self.say(name)
                self.function(function)
            elif isinstance(value, Dispatcher) and own:
                self.value(value)

    def _known(self, thing: object) -> bool:
        if id(thing) in self._seen:
            return True
        self._seen.add(id(thing))
        return False


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "paneflow"


def _names(code: CodeType) -> set[str]:
    """What a function names, and the functions within it."""
    inner = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*inner)
