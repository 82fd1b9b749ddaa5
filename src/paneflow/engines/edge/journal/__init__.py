"""What a node writes down, so that nothing is lost and nothing happens twice if it dies.

A journal is a folder with a snapshot and the records that came after it::

    lock                       who uses the folder
    snapshot-00000003.state    a node's state when segment 3 was begun
    segment-00000003.log       the records since, one group for each commit

A snapshot takes the place of all segments before it. Nodes are state machines, so the snapshot and
the records make the same state again.
"""

from paneflow.engines.edge.journal.errors import JournalError
from paneflow.engines.edge.journal.journal import Journal
from paneflow.engines.edge.journal.record_codec import RecordCodec
from paneflow.engines.edge.journal.snapshots import Stored

__all__ = ["Journal", "JournalError", "RecordCodec", "Stored"]
