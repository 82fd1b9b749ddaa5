"""Where events come from and where rows go, as a file says it."""

from __future__ import annotations

from collections.abc import Callable

from paneflow.engines.edge.config.addresses import check_port, listening
from paneflow.engines.edge.config.model import (
    FileInputConfig,
    InputConfig,
    MqttInputConfig,
    OutputConfig,
    ParquetOutputConfig,
    SlicesOutputConfig,
    StdoutOutputConfig,
    ZmqInputConfig,
)
from paneflow.engines.edge.config.section import Section

FILE_FORMATS = ("parquet", "csv", "ndjson", "arrow")
PAYLOADS = ("json", "arrow")
LINE_FORMATS = ("text", "json", "csv")


def read_input(section: Section) -> InputConfig:
    """What one input table describes."""
    kind = section.needed_text("kind", '"zmq", "file" or "mqtt"', INPUTS)
    found = INPUTS[kind](section)
    section.finish()
    return found


def read_output(section: Section) -> OutputConfig:
    """What one output table describes."""
    kind = section.needed_text("kind", '"stdout", "parquet" or "slices"', OUTPUTS)
    found = OUTPUTS[kind](section)
    section.finish()
    return found


def _zmq(section: Section) -> ZmqInputConfig:
    section.require("address", '"tcp://127.0.0.1:7100"')
    return ZmqInputConfig(str(listening(section, "address")))


def _file(section: Section) -> FileInputConfig:
    path = section.needed_path("path", '"readings/today.parquet"')
    return FileInputConfig(path, section.text("format", FILE_FORMATS), section.flag("follow"))


def _mqtt(section: Section) -> MqttInputConfig:
    address = section.needed_text("address", '"mqtt://127.0.0.1:1883"')
    if not address.startswith(("mqtt://", "mqtts://")):
        raise section.error(
            f"address = {address!r} is not a broker: write mqtt://HOST:PORT, or mqtts://HOST:PORT "
            f"for TLS"
        )
    check_port(section, "address", address, any_allowed=False)
    return MqttInputConfig(
        address=address,
        topic=section.needed_text("topic", '"home/{house}/{plug}/load"'),
        payload=section.text("payload", PAYLOADS) or "json",
        number=section.text("number"),
        user=section.text("user"),
        password_file=section.path("password_file"),
        ca_file=section.path("ca_file"),
    )


def _stdout(section: Section) -> StdoutOutputConfig:
    return StdoutOutputConfig(section.text("format", LINE_FORMATS) or "text")


def _parquet(section: Section) -> ParquetOutputConfig:
    return ParquetOutputConfig(section.needed_path("folder", '"rows"'))


def _slices(section: Section) -> SlicesOutputConfig:
    return SlicesOutputConfig(section.needed_path("folder", '"slices"'))


INPUTS: dict[str, Callable[[Section], InputConfig]] = {"zmq": _zmq, "file": _file, "mqtt": _mqtt}
OUTPUTS: dict[str, Callable[[Section], OutputConfig]] = {
    "stdout": _stdout,
    "parquet": _parquet,
    "slices": _slices,
}
