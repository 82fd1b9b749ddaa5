"""Compiled functions that find their machine code on disk, or keep it there."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from llvmlite import binding as llvm
from numba import config, types
from numba.core import sigutils
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from paneflow.compiling.folder import folder, is_trusted
from paneflow.compiling.identity import identity
from paneflow.compiling.notices import notices
from paneflow.compiling.turns import turn

Function = TypeVar("Function", bound=Callable[..., Any])

SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
"""What a user may have told Numba about the code it makes."""
DIGEST = hashlib.sha256().digest_size
LAYOUT = 2
"""What a file holds: changes whenever that does."""


def keep(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function with Numba's options, and keeps what it compiled."""
    return lambda function: _made(Kernel, function, options)


def inner(**options: Any) -> Callable[[Function], Function]:
    """A decorator for functions that only compiled functions call.

    What lets Python call them is left out: it takes as long to compile as many a function.
    """
    return lambda function: _made(Inner, function, _INNER | options)


_ALL = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}
_INNER = {"nogil": True, "no_cpython_wrapper": True}


def _made(kind: type[CPUDispatcher], function: Any, options: dict[str, Any]) -> Any:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    return kind(function, targetoptions=_ALL | options)


class Inner(CPUDispatcher):
    """What Numba makes of a function that becomes part of others."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Without a way in from Python, the call would end the process."""
        raise TypeError(f"{self.py_func.__qualname__} can be called by compiled functions only")


class Kernel(CPUDispatcher):
    """What Numba makes of a function, with a cache of ours."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._cache = Kept(self)

    def compile(self, sig: Any) -> Any:
        """The machine code for types of arguments, from the folder or from the compiler.

        Arrays that may only be read, such as those over Arrow's memory, are taken by the machine
        code for arrays that may be written: it is the same, and compiling takes time. Numba would
        refuse a kernel that writes to them; a test asks it whether there is one.
        """
        given, _ = sigutils.normalize_signature(sig)
        taken = tuple(map(_writable, given))
        # Two threads compile one after the other anyway.
        with global_compiler_lock, self._cache.attempt():
            entry = super().compile(sig if taken == given else taken)
            if given not in self.overloads:
                found: Any = self.overloads[taken]
                self.add_overload(found._replace(signature=found.signature.replace(args=given)))
            return entry


class Kept(NullCache):
    """The machine code of one function on disk, one file for each list of types.

    Numba asks it before it compiles and tells it what was compiled; it keeps its file locked in
    between.
    """

    full = False
    """Whether this process has failed to write: to a full disk, or where it may only read."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._attempts: list[contextlib.ExitStack] = []

    @property
    def cache_path(self) -> str | None:
        """Where files are kept, if they are."""
        place = folder()
        return None if place is None else str(place)

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Around one request for machine code."""
        with contextlib.ExitStack() as until_done:
            self._attempts.append(until_done)
            try:
                yield
            finally:
                self._attempts.pop()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types; None if this process is to compile it."""
        path = self._path(sig, target_context.codegen())
        found = _read(path)
        if found is None:
            self._attempts[-1].enter_context(notices.compiling())
            if path is not None:
                lock = path.with_suffix(".lock")
                self._attempts[-1].enter_context(turn(lock, path.exists))
                found = _read(path)
        return None if found is None else _loaded(found, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        path = self._path(sig, data.codegen)
        if path is not None and not Kept.full and not data.library.has_dynamic_globals:
            try:
                _write(path, dumps((_outside(data.library), data._reduce())))
            except OSError as error:
                Kept.full = True
                notices.cannot_keep(error)

    @functools.cached_property
    def _identity(self) -> str:
        return identity(self._dispatcher)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        place = folder()
        if place is None:
            return None
        arguments, result = sigutils.normalize_signature(sig)
        settings = [(name, str(getattr(config, name, None))) for name in SETTINGS]
        said = repr(
            (
                self._identity,
                [_described(each) for each in arguments],
                str(result),
                codegen.magic_tuple(),
                settings,
                LAYOUT,
            )
        )
        function = self._dispatcher.py_func
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        return place / f"{name}-{hashlib.sha256(said.encode()).hexdigest()[:32]}.kernel"


def _writable(kind: types.Type) -> types.Type:
    """The type of arguments for which machine code is made, of arrays and tuples of arrays."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        named = getattr(kind, "instance_class", None)
        made: types.Type = types.BaseTuple.from_types(tuple(map(_writable, parts)), named)
        return made
    return kind


def _described(kind: types.Type) -> str:
    """A type in words; Numba's own leave out a tuple's fields, and where its class is defined."""
    class_: Any = getattr(kind, "instance_class", None)
    named = f" {class_.__module__} {class_._fields}" if hasattr(class_, "_fields") else ""
    parts: Any = kind if isinstance(kind, types.BaseTuple) else ()
    inner = [_described(each) for each in parts]
    return f"{kind}{named} {inner}" if named or inner else str(kind)


def _outside(library: Any) -> list[str]:
    """The names of functions and variables that machine code uses and does not hold itself."""
    module = library._final_module
    every = itertools.chain(module.functions, module.global_variables)
    return [e.name for e in every if e.is_declaration and not e.name.startswith("llvm.")]


def _loaded(found: Any, target_context: Any) -> Any:
    """Machine code that was kept, ready to be called.

    Numba would first refresh its tables of everything that can be compiled, which takes 0.1 s in a
    new process and is of no use to what is compiled already, unless it uses a name that only the
    refresh makes known.
    """
    outside, reduced = found
    rtsys.initialize(target_context)
    if not all(map(llvm.address_of_symbol, outside)):
        target_context.refresh()
    return CompileResult._rebuild(target_context, *reduced)


def _read(path: Path | None) -> Any:
    """What a file holds; None if it is not there, damaged, or could be somebody else's."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            if not is_trusted(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    digest, data = content[:DIGEST], content[DIGEST:]
    # Nobody waits for the disk when a file is written, so a crash may have cut it off.
    return pickle.loads(data) if digest == hashlib.sha256(data).digest() else None


def _write(path: Path, data: bytes) -> None:
    """Make a file appear as a whole."""
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
