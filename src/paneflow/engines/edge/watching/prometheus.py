"""Metrics for Prometheus, over HTTP. Needs prometheus-client, which the extra `edge` brings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from types import TracebackType

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from paneflow.engines.edge.watching.latencies import BOUNDS
from paneflow.engines.edge.watching.metrics import Metrics, Reading
from paneflow.errors import UnsupportedError

COUNTERS = {
    "events": "Events that came in from sources.",
    "late": "Events that came after their windows had closed.",
    "refused": "Messages that were refused.",
    "reports": "Reports that were made for the parent.",
    "rows": "Rows that were written.",
}
TRAFFIC = {
    "received_bytes": "Bytes from a neighbour.",
    "received_messages": "Messages from a neighbour.",
    "sent_bytes": "Bytes to a neighbour.",
    "sent_messages": "Messages to a neighbour.",
}


class NodeCollector(Collector):
    """Gives the metrics of a node whenever Prometheus asks; nothing is counted twice."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """All metrics, at one moment."""
        own = [self._metrics.node, self._metrics.role]
        reading = self._metrics.read()
        for name, says in COUNTERS.items():
            counter = CounterMetricFamily(f"paneflow_{name}", says, labels=["node", "role"])
            counter.add_metric(own, getattr(reading, name))
            yield counter
        for name, says in TRAFFIC.items():
            labels = ["node", "role", "neighbour"]
            counter = CounterMetricFamily(f"paneflow_{name}", says, labels=labels)
            for neighbour, traffic in reading.traffic.items():
                counter.add_metric([*own, neighbour], getattr(traffic, name))
            yield counter
        yield _up(own, reading)
        yield from _gauges(own, reading)
        yield _latency(own, reading)


class PrometheusExporter:
    """Answers Prometheus at an address until it is closed.

    Args:
        metrics: What is shown.
        address: `host:port`; with port 0 the system chooses one.
    """

    def __init__(self, metrics: Metrics, address: str) -> None:
        host, _, port = address.rpartition(":")
        registry = CollectorRegistry(auto_describe=False)
        registry.register(NodeCollector(metrics))
        try:
            self._server, self._thread = start_http_server(
                int(port), host.strip("[]"), registry=registry
            )
        except OSError as error:
            raise UnsupportedError(
                f"metrics cannot be shown at {address} ({error.strerror or error}): choose another "
                f"address, or stop what uses this one"
            ) from None
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> PrometheusExporter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _up(own: list[str], reading: Reading) -> Metric:
    up = GaugeMetricFamily(
        "paneflow_child_up",
        "Whether a node below is alive (1) or not (0).",
        labels=["node", "role", "child"],
    )
    for child, alive in reading.children.items():
        up.add_metric([*own, child], float(alive))
    return up


def _gauges(own: list[str], reading: Reading) -> Iterator[Metric]:
    shown = {
        "lag_seconds": ("How far the watermark is behind the clock.", reading.lag),
        "queued_messages": (
            "Messages that the parent has not acknowledged.",
            float(reading.queued_messages),
        ),
        "queued_bytes": ("Their size.", float(reading.queued_bytes)),
    }
    for name, (says, value) in shown.items():
        gauge = GaugeMetricFamily(f"paneflow_{name}", says, labels=["node", "role"])
        if value is not None:
            gauge.add_metric(own, value)
        yield gauge


def _latency(own: list[str], reading: Reading) -> Metric:
    histogram = HistogramMetricFamily(
        "paneflow_latency_seconds",
        "From the report that closed windows to their rows.",
        labels=["node", "role"],
    )
    upto = [*map(str, BOUNDS), "+Inf"]
    counts = accumulate(map(float, reading.latencies.counts))
    histogram.add_metric(
        own, buckets=list(zip(upto, counts, strict=True)), sum_value=reading.latencies.total
    )
    return histogram
