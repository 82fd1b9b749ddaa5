"""Functions compiled to machine code: once per machine, and never from a source that has changed.

Numba can keep what it compiled, but beside the source or in a home folder, which a container may
not have; it looks at one file only, so a kernel would go on with the old version of a function
that it calls from another file; and processes that start together compile the same things side
by side. Kernels here are kept in one folder (`folder.py`), under a name made of everything their
machine code depends on (`identity.py`), and are compiled by one process while others wait, or
compile what they need besides (`turns.py`). Nothing of this touches Numba's settings, which belong
to the user.

`compiled` is for functions that Python calls. What only other compiled functions call is a
`helper`: it becomes part of them, and nothing is kept for it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paneflow.compiling.kernel import inner, keep
from paneflow.compiling.turns import in_any_order

Compiler = Callable[[Callable[..., Any]], Any]

compiled = keep(nogil=True)
"""Compiles a function that lets other threads of Python run meanwhile."""

held = keep(nogil=False)
"""Compiles a function that keeps the interpreter lock."""

helper: Compiler = inner()
"""Compiles a function that compiled functions call, and Python does not."""

lean: Compiler = inner(forceinline=True, _nrt=False)
"""Compiles a helper that makes no arrays, into its callers and without reference counting."""

pasted: Compiler = inner(inline="always")
"""Compiles a helper by pasting it into its callers before their types are known."""

__all__ = ["compiled", "held", "helper", "in_any_order", "inner", "keep", "lean", "pasted"]
