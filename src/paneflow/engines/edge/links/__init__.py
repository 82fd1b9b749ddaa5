"""Reports from a node to its parent, each exactly once and in order, over connections that break.

Every report has a number. The sender keeps it until the parent acknowledges the number, which it
does once the report is in its log. The receiver takes numbers in order only: it drops what it has
and asks for what it misses. Neither knows of sockets or clocks: they are told what has arrived, and
say what to send.
"""

from paneflow.engines.edge.links.receiver import Receiver
from paneflow.engines.edge.links.sender import Kept, Sender

__all__ = ["Kept", "Receiver", "Sender"]
