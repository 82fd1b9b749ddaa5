"""Messages between two nodes, as bytes.

A message is a header of fixed size (`headers.py`) and a body that is compressed where that pays
(`compressing.py`): a text, and tables as Arrow record batches without their schema
(`parcels.py`, `batches.py`), since both ends know what tables a query reports.

Whatever arrives is taken for damaged or hostile until it has been checked. All that can be wrong
with it is a `WireError`.
"""

from paneflow.engines.edge.wire.errors import TooLarge, WireError
from paneflow.engines.edge.wire.headers import PROTOCOL, size_of
from paneflow.engines.edge.wire.messages import (
    Ack,
    Ask,
    Goodbye,
    Heartbeat,
    Hello,
    Introduce,
    Message,
    Numbered,
    Refusal,
    Resend,
    Welcome,
)
from paneflow.engines.edge.wire.wire import LIMIT, Wire

__all__ = [
    "LIMIT",
    "PROTOCOL",
    "Ack",
    "Ask",
    "Goodbye",
    "Heartbeat",
    "Hello",
    "Introduce",
    "Message",
    "Numbered",
    "Refusal",
    "Resend",
    "TooLarge",
    "Welcome",
    "Wire",
    "WireError",
    "size_of",
]
