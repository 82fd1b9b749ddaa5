"""The inputs of a child node and the outputs of the root, from their descriptions."""

from __future__ import annotations

from typing import assert_never

from paneflow.engines.edge.config import (
    FileInputConfig,
    MqttInputConfig,
    NodeConfig,
    OutputConfig,
    ParquetOutputConfig,
    SlicesOutputConfig,
    StdoutOutputConfig,
    ZmqInputConfig,
)
from paneflow.engines.edge.inputs.contract import Input
from paneflow.engines.edge.inputs.files import FileInput
from paneflow.engines.edge.inputs.mqtt_input import MqttInput
from paneflow.engines.edge.inputs.zmq_input import ZmqInput
from paneflow.engines.edge.outputs.contract import RowsOutput
from paneflow.engines.edge.outputs.parquet import ParquetOutput
from paneflow.engines.edge.outputs.slices import SlicesOutput
from paneflow.engines.edge.outputs.stdout import StdoutOutput
from paneflow.engines.edge.running.security import Security


def make_inputs(config: NodeConfig, security: Security) -> list[Input]:
    """All inputs of a child node. Their names tell their kind, and their number among this kind."""
    made: list[Input] = []
    numbers: dict[type, int] = {}
    columns, time = config.columns, config.question.query.time
    for given in config.inputs:
        number = numbers[type(given)] = numbers.get(type(given), 0) + 1
        match given:
            case ZmqInputConfig(address):
                made.append(_zmq(f"zmq-{number}", address, config, security))
            case FileInputConfig(path, format, follow):
                name = f"file-{number}"
                made.append(FileInput(name, path, columns, time, format=format, follow=follow))
            case MqttInputConfig():
                made.append(_mqtt(f"mqtt-{number}", given, config))
            case _ as never:
                assert_never(never)
    return made


def _zmq(name: str, address: str, config: NodeConfig, security: Security) -> ZmqInput:
    return ZmqInput(
        name,
        address,
        config.columns,
        config.question.query.time,
        context=security.context,
        keys=security.keys,
        belongs=security.belongs,
    )


def _mqtt(name: str, given: MqttInputConfig, config: NodeConfig) -> MqttInput:
    password = given.password_file.read_text().strip() if given.password_file else None
    return MqttInput(
        name,
        given.address,
        given.topic,
        config.columns,
        config.question.query.time,
        client_id=f"paneflow-{config.name}-{name}",
        payload=given.payload,
        number=given.number,
        user=given.user,
        password=password,
        ca_file=given.ca_file,
    )


def make_output(given: OutputConfig) -> RowsOutput | SlicesOutput:
    """Where rows go."""
    match given:
        case StdoutOutputConfig(format):
            return StdoutOutput(format)
        case ParquetOutputConfig(folder):
            return ParquetOutput(folder)
        case SlicesOutputConfig(folder):
            return SlicesOutput(folder)
        case _ as never:
            assert_never(never)
