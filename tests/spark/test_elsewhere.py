"""Tasks in other processes, that get paneflow as users ship it: an archive of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paneflow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.processes
@pytest.mark.parametrize("where", ["cluster", "connect"])
def test_an_archive_is_enough_for_tasks_in_other_processes(where: str, tmp_path: Path) -> None:
    package = Path(paneflow.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "paneflow"), "zip", package.parent, package.name)
    # Only the driver finds the package by its path; workers must take it from the archive.
    start = "import runpy, sys; sys.path[:0] = sys.argv[1:3]; sys.argv = ['', *sys.argv[3:]]; "
    start += "runpy.run_module('tests.spark._elsewhere', run_name='__main__')"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", start, str(package.parent), str(ROOT), where, archive],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert ran.stdout.count("same rows") == 4, ran.stdout + ran.stderr[-3000:]
