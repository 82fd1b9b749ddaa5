"""What to say to somebody who has mistyped a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(given: str, known: Iterable[str]) -> str:
    """The known name that is most like the given one, or else all of them.

    >>> suggestion("lissten", ["role", "listen"])
    "did you mean 'listen'?"
    >>> suggestion("colour", ["role", "listen"])
    'choose from role, listen'
    """
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(names)}"
