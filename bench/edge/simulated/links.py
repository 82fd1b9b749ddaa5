"""Links between simulated nodes: latency, bandwidth, and lost packets that are sent again.

A link behaves like a TCP connection. Messages arrive in the order in which they were sent, so that
one whose packet was lost holds up those behind it. A lost packet is sent again after a fifth of a
second, and after twice as long if it is lost again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array

PACKET = 1448
"""Bytes of a message in a packet."""
HEAD = 52
"""Bytes of IP and TCP in front of them."""
AGAIN = 0.2
"""Seconds until a lost packet is sent again: what Linux waits at least."""


class Link(NamedTuple):
    """What is known of the links of one level."""

    name: str
    latency: float
    """The median of the seconds that a packet takes."""
    spread: float
    """The standard deviation of its logarithm."""
    bytes_per_second: float
    loss: float
    """The share of packets that are lost."""

    def delays(self, sizes: Array, random: np.random.Generator) -> tuple[Array, int]:
        """Seconds from sending to arrival for messages of some sizes, and the packets it took."""
        packets = -(-sizes // PACKET)
        sent = sizes + HEAD * packets
        seconds = self.latency * np.exp(self.spread * random.normal(size=sizes.shape))
        seconds += sent / self.bytes_per_second
        if self.loss == 0:
            return seconds, int(packets.sum())
        # The packet of a message that is lost most often decides.
        unlucky = random.random(sizes.shape) ** (1 / packets)
        losses = np.floor(np.log1p(-unlucky) / np.log(self.loss)).astype(np.int64)
        again = random.binomial(packets, self.loss).sum()
        return seconds + AGAIN * (2.0**losses - 1), int(packets.sum() + again)


NEARBY = Link("one building", 0.000_3, 0.3, 125e6, 0.0)
MOBILE = Link("mobile network", 0.03, 0.5, 250e3, 0.01)
LINE = Link("leased line", 0.005, 0.2, 12.5e6, 0.000_1)
SAME_MACHINE = Link("this machine", 0.000_05, 0.3, 1e9, 0.0)
