"""What a node counts, and how Prometheus and heartbeats see it."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from paneflow import UnsupportedError
from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.engines.edge.watching.metrics import Metrics
from paneflow.engines.edge.watching.prometheus import PrometheusExporter

NOW = 1_700_000_000.0


@pytest.fixture
def metrics() -> Metrics:
    """What a merging node has counted."""
    metrics = Metrics("street", "merge", clock=lambda: NOW)
    metrics.count(events=100, late=2)
    metrics.count(events=50, reports=3)
    metrics.received("house-1", 500)
    metrics.received("house-1", 700, messages=2)
    metrics.received("house-2", 10)
    metrics.sent("cloud", 90)
    metrics.moved_to(round((NOW - 2.5) * 10**6))
    metrics.queued(4, 4000)
    metrics.alive({"house-1": True, "house-2": False})
    for seconds in (0.004, 0.02, 0.02, 0.9):
        metrics.closed(seconds)
    return metrics


def scraped(exporter: PrometheusExporter) -> dict[tuple[str, str], float]:
    """What Prometheus would see, by name and by what is not the same for the whole node."""
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics") as answer:
        text = answer.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("node"), labels.pop("role")) == ("street", "merge")
            found[sample.name, ",".join(labels.values())] = sample.value
    return found


@pytest.fixture
def exporter(metrics: Metrics) -> Iterator[PrometheusExporter]:
    with PrometheusExporter(metrics, "127.0.0.1:0") as exporter:
        yield exporter


def test_a_heartbeat_carries_what_was_counted(metrics: Metrics) -> None:
    told = metrics.as_dict()
    assert told == {
        "role": "merge",
        "at": NOW,
        "events": 150,
        "late": 2,
        "reports": 3,
        "in": 1210,
        "out": 90,
        "queued": 4,
        "queued_bytes": 4000,
        "alive": 1,
        "children": 2,
        "latency": 0.02,
        "latency_p99": 0.9,
        "lag": 2.5,
    }
    assert json.loads(json.dumps(told)) == told


def test_a_node_that_has_done_nothing_says_little() -> None:
    assert Metrics("a", "child", clock=lambda: NOW).as_dict() == {"role": "child", "at": NOW}


@pytest.mark.parametrize("watermark", [BEFORE_ALL, AFTER_ALL])
def test_there_is_no_lag_before_the_first_watermark_and_after_the_last(watermark: int) -> None:
    metrics = Metrics("a", "child", clock=lambda: NOW)
    metrics.moved_to(round(NOW * 10**6))
    metrics.moved_to(watermark)
    assert metrics.read().lag is None


def test_times_that_are_no_timestamps_have_no_lag() -> None:
    metrics = Metrics("a", "child", timestamps=False, clock=lambda: NOW)
    metrics.moved_to(17)
    assert metrics.read().lag is None


def test_a_reading_does_not_change_afterwards(metrics: Metrics) -> None:
    before = metrics.read()
    metrics.received("house-1", 1)
    metrics.closed(60.0)
    assert before.traffic["house-1"].received_bytes == 1200
    assert before.latencies.quantile(1.0) == 0.9
    assert sum(before.latencies.counts) == 4


def test_threads_count_together() -> None:
    metrics = Metrics("a", "child")

    def work() -> None:
        for _ in range(2000):
            metrics.count(events=3)
            metrics.sent("up", 5)
            metrics.closed(0.1)
            metrics.read()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reading = metrics.read()
    assert reading.events == 4 * 2000 * 3
    assert reading.traffic["up"].sent_bytes == 4 * 2000 * 5
    assert sum(reading.latencies.counts) == 4 * 2000


def test_prometheus_sees_what_was_counted(exporter: PrometheusExporter) -> None:
    found = scraped(exporter)
    expected = {
        ("paneflow_events_total", ""): 150,
        ("paneflow_late_total", ""): 2,
        ("paneflow_reports_total", ""): 3,
        ("paneflow_rows_total", ""): 0,
        ("paneflow_received_bytes_total", "house-1"): 1200,
        ("paneflow_received_messages_total", "house-1"): 3,
        ("paneflow_received_bytes_total", "house-2"): 10,
        ("paneflow_sent_bytes_total", "cloud"): 90,
        ("paneflow_child_up", "house-1"): 1,
        ("paneflow_child_up", "house-2"): 0,
        ("paneflow_lag_seconds", ""): 2.5,
        ("paneflow_queued_messages", ""): 4,
        ("paneflow_queued_bytes", ""): 4000,
        ("paneflow_latency_seconds_bucket", "0.005"): 1,
        ("paneflow_latency_seconds_bucket", "0.025"): 3,
        ("paneflow_latency_seconds_bucket", "1.0"): 4,
        ("paneflow_latency_seconds_bucket", "+Inf"): 4,
        ("paneflow_latency_seconds_count", ""): 4,
        ("paneflow_latency_seconds_sum", ""): pytest.approx(0.944),
    }
    assert {name: found[name] for name in expected} == expected


def test_prometheus_sees_what_is_counted_later(
    metrics: Metrics, exporter: PrometheusExporter
) -> None:
    metrics.count(events=1000)
    assert scraped(exporter)["paneflow_events_total", ""] == 1150
    metrics.moved_to(AFTER_ALL)
    assert ("paneflow_lag_seconds", "") not in scraped(exporter)


def test_an_address_that_is_taken_is_named(metrics: Metrics, exporter: PrometheusExporter) -> None:
    taken = f"127.0.0.1:{exporter.port}"
    with pytest.raises(UnsupportedError, match=f"cannot be shown at {taken} .*Address already"):
        PrometheusExporter(metrics, taken)


def test_a_closed_exporter_leaves_its_port(metrics: Metrics) -> None:
    with PrometheusExporter(metrics, "127.0.0.1:0") as first:
        port = first.port
    with PrometheusExporter(metrics, f"127.0.0.1:{port}") as second:
        assert scraped(second)["paneflow_events_total", ""] == 150
