"""What can go wrong with a journal."""

from __future__ import annotations

from paneflow.errors import PaneflowError


class JournalError(PaneflowError):
    """A journal cannot be written or read; what was committed is still there."""
