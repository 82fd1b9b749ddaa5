"""The pages people read, and the code blocks on them.

The convention, as CONTRIBUTING.md states it: `python` blocks of a page run in order, in one
namespace and in an empty folder. A `text` block right after one shows exactly what it prints; a
block without one prints nothing. A page with a `python spark` block runs with Spark. Every command
in an `sh` block is one this repository has. Blocks without a language are drawings.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^(?P<ticks>```+)(?P<info>.*)\n(?P<text>(?:.*\n)*?)(?P=ticks)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where it stands."""

    language: str
    text: str
    line: int
    follows: bool
    """Whether only blank lines stand between it and the block before."""


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    written = page.read_text()
    end = 0
    for found in FENCE.finditer(written):
        line = written.count("\n", 0, found.start()) + 2
        follows = end > 0 and not written[end : found.start()].strip()
        yield Block(found["info"].strip(), found["text"], line, follows)
        end = found.end()


def needs_spark(page: Path) -> bool:
    """Whether a page has a block that is marked `python spark`."""
    return any(block.language == "python spark" for block in blocks(page))


def run(page: Path) -> list[tuple[int, str, str]]:
    """Run a page's Python; for each block its line, what the page shows, and what is printed."""
    names: dict[str, object] = {"__name__": page.stem}
    compared = []
    for block, after in pairwise([*blocks(page), None]):
        if block and block.language.startswith("python"):
            # Blank lines before it make a traceback name the line of the page.
            code = compile("\n" * (block.line - 1) + block.text, page.name, "exec")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            shown = after.text if after and after.language == "text" and after.follows else ""
            compared.append((block.line, shown.rstrip(), _trimmed(printed.getvalue())))
    return compared


def _trimmed(printed: str) -> str:
    return "\n".join(line.rstrip() for line in printed.splitlines()).rstrip()
