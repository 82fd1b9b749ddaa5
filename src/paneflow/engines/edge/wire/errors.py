"""What can be wrong with a message."""

from __future__ import annotations

from paneflow.errors import PaneflowError


class WireError(PaneflowError):
    """A message cannot be read, or what is to be sent does not fit into one."""


class TooLarge(WireError):
    """A message is larger than this node takes: it will be so, too, when it is sent again."""
