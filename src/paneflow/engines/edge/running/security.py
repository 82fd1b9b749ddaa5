"""What a node needs to make connections: a context, its keys, and who decides about others'."""

from __future__ import annotations

import zmq

from paneflow.engines.edge.config import NodeConfig
from paneflow.engines.edge.network.authenticator import Authenticator
from paneflow.engines.edge.network.keys import Keys, read_keys, read_public
from paneflow.engines.edge.network.sockets import Context
from paneflow.engines.edge.watching.metrics import Metrics


class Security:
    """One context for all sockets of a node, and its keys if it has any."""

    def __init__(self, config: NodeConfig, metrics: Metrics) -> None:
        self.keys: Keys | None = None
        self.parent_key: bytes | None = None
        self._authenticator: Authenticator | None = None
        if config.keys is not None:
            self.keys = read_keys(config.keys, config.name)
            if config.parent is not None and config.parent.name is not None:
                self.parent_key = read_public(config.keys, config.parent.name)
        self.context: Context = zmq.Context()
        if config.keys is not None:
            self._authenticator = Authenticator(
                self.context, config.keys, lambda address: metrics.count(refused=1)
            )

    def belongs(self, name: str, key: str) -> bool:
        """Whether a node may use a name. Without keys, everybody on this machine may."""
        return self._authenticator is None or self._authenticator.belongs(name, key)

    def close(self) -> None:
        """Let nobody connect any more."""
        if self._authenticator is not None:
            self._authenticator.close()
        # Sockets are closed by those who opened them, unless opening some of them has failed.
        self.context.destroy(linger=0)
