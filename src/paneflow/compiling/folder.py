"""The one folder in which compiled kernels are kept.

It is named by PANEFLOW_CACHE, or else is the user's cache folder of the platform. Kernels are
machine code that will be run, so they are read only if this user or the superuser owns them and
nobody else can have written them. Where nothing can be kept, kernels are compiled in every
process, and a log message says so once.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from pathlib import Path

import llvmlite
import numba
import numpy as np
import platformdirs

from paneflow._version import __version__
from paneflow.compiling.notices import notices

VARIABLE = "PANEFLOW_CACHE"


@functools.cache
def folder() -> Path | None:
    """Where kernels of this version are kept; None if there is no place for them."""
    try:
        return _made(root() / versions())
    except (OSError, RuntimeError) as error:
        notices.cannot_keep(error)
        return None


def root() -> Path:
    """What PANEFLOW_CACHE names, or the user's cache folder."""
    path = Path(os.environ.get(VARIABLE) or platformdirs.user_cache_dir("paneflow")).expanduser()
    # Without a home, the platform's answer may still begin with "~".
    if not path.is_absolute() and not os.environ.get(VARIABLE):
        raise RuntimeError("this user has no home folder")
    return path.absolute()


def versions() -> str:
    """A name for everything but the functions themselves that decides what is compiled."""
    # Free-threaded Pythons and those with debug checks differ from others of their version.
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    libraries = f"numba{numba.__version__}-llvmlite{llvmlite.__version__}-numpy{np.__version__}"
    return f"paneflow{__version__}-{python}-{libraries}"


def is_trusted(owned: os.stat_result) -> bool:
    """Whether nobody but this user and the superuser can have written a file or folder."""
    if not hasattr(os, "geteuid"):
        return True
    mine = owned.st_uid in (os.geteuid(), 0)
    return mine and not owned.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _made(path: Path) -> Path:
    if not path.is_dir():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    if not is_trusted(path.stat()):
        raise PermissionError(f"others can write to {path}, or own it")
    return path
