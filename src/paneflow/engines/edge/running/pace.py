"""How long a node waits for what, and how much it takes at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Times in seconds, sizes in bytes. The defaults suit a tree in one building.

    None of them changes rows.
    """

    linger: float = 0.02
    """What has closed waits so long, so that windows that close together travel together."""
    progress: float = 5.0
    """After that long, a node reports how far it is, even if no window has closed."""
    heartbeat: float = 1.0
    """After that long without a message, a node gives its parent a sign of life."""
    show: float = 5.0
    """So often, a sign of life tells how the node and those below it fare."""
    retry: float = 5.0
    """A parent that has not answered for that long is greeted again."""
    parts_at_once: int = 64
    """A turn takes at most that many batches of an input, so that all inputs get their turn."""
    bytes_at_once: int = 32 << 20
    """A turn takes about that much from the nodes below."""
    under_way: int = 16 << 20
    """Reports that may be on their way to the parent, unacknowledged; others wait in the node."""
    snapshot_every: int = 64 << 20
    """The log is replaced by a snapshot when it has grown by that much."""
