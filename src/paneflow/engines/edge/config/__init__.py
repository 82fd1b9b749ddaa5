"""What a tree looks like, as people write it in a file: `tree.toml`.

`read_tree` reads a file, `TreeConfig.node` picks a node of it, and a `NodeConfig` is all that is
needed to run that node.
"""

from paneflow.engines.edge.config.model import (
    ConfigError,
    FileInputConfig,
    InputConfig,
    LimitsConfig,
    MqttInputConfig,
    NodeConfig,
    OutputConfig,
    Parent,
    ParquetOutputConfig,
    Role,
    SlicesOutputConfig,
    StdoutOutputConfig,
    TreeConfig,
    ZmqInputConfig,
)
from paneflow.engines.edge.config.reading import read_tree

__all__ = [
    "ConfigError",
    "FileInputConfig",
    "InputConfig",
    "LimitsConfig",
    "MqttInputConfig",
    "NodeConfig",
    "OutputConfig",
    "Parent",
    "ParquetOutputConfig",
    "Role",
    "SlicesOutputConfig",
    "StdoutOutputConfig",
    "TreeConfig",
    "ZmqInputConfig",
    "read_tree",
]
