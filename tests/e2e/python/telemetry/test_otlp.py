# SPDX-License-Identifier: Apache-2.0
"""Traces and metrics over OTLP: what a collector gets is read by OpenTelemetry's own messages, strictly."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.paused import connect, pause
from support.server import Server, children, own_server, user_of
from support.waiting import eventually

EXPORTER_USER = 64996  # the setting otlp_uid
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def with_bytes(value: Any) -> Any:
    """OTLP writes ids in hexadecimal where the JSON of protobuf has base64."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        k: base64.b64encode(bytes.fromhex(v)).decode() if k in ids else with_bytes(v) for k, v in value.items()
    }


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[int] = []  # of the next requests; 200 behind them
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Any]:
        """Of all requests so far, as OpenTelemetry's messages."""
        found = []
        for path, _, body in self.requests:
            if path == "/v1/traces":
                message = json_format.ParseDict(with_bytes(body), ExportTraceServiceRequest())
                found += [s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans]
        return found

    def metrics(self) -> dict[str, Any]:
        """Of the latest request."""
        for path, _, body in reversed(self.requests):
            if path == "/v1/metrics":
                message = json_format.ParseDict(with_bytes(body), ExportMetricsServiceRequest())
                return {m.name: m for r in message.resource_metrics for scope in r.scope_metrics for m in scope.metrics}
        return {}


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 200:
            self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def server(collector: Collector) -> Iterator[Server]:
    made = Server()
    (made.home / "headers").write_text("# for the collector\nAuthorization: Bearer of-a-test\n")
    flags = ("--otlp-endpoint", collector.url, "--otlp-headers-file", str(made.home / "headers"))
    with own_server(*flags, "--otlp-metrics-seconds", "1", "--otlp-batch-ms", "100", "--gates", "2", made=made) as up:
        yield up


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def named(collector: Collector, name: str, box: str) -> Any:
    found = [s for s in collector.spans() if s.name == name and attributes(s).get("cloche.sandbox.id") == box]
    return found[0] if found else None


def phases(collector: Collector, span: Any) -> dict[str, Any]:
    return {s.name: s for s in collector.spans() if s.parent_span_id == span.span_id}


def test_a_life_is_traced_with_its_phases(server: Server, collector: Collector) -> None:
    box = server.wire.create("code-interpreter-v1", timeout=300)
    box.execute("1 + 1")
    assert pause(box).status == 204
    assert connect(box).status == 201
    box.kill()
    create = eventually(lambda: named(collector, "create", box.id), 20, state=lambda: str(collector.requests)[-3000:])
    inner = phases(collector, create)
    assert {"gate", "jail", "agent", "store"} <= set(inner), inner
    assert len(create.trace_id) == 16
    assert attributes(create)["http.response.status_code"] == 201
    for phase in inner.values():
        assert phase.trace_id == create.trace_id
        assert create.start_time_unix_nano <= phase.start_time_unix_nano <= phase.end_time_unix_nano
        assert phase.end_time_unix_nano <= create.end_time_unix_nano + 1_000_000
    cell = eventually(lambda: named(collector, "cell", box.id), 20)
    assert {"connect", "kernel", "stream"} == set(phases(collector, cell))
    expected = {
        "pause": {"gate", "queue", "dump", "store"},
        "connect": {"gate", "queue", "restore", "store"},
        "kill": {"gate", "warden"},
    }
    for name, inside in expected.items():
        span = eventually(lambda name=name: named(collector, name, box.id), 20)
        inner = phases(collector, span)
        assert set(inner) == inside, name
        assert span.trace_id != create.trace_id
        for phase in inner.values():
            assert span.start_time_unix_nano <= phase.start_time_unix_nano <= phase.end_time_unix_nano
            assert phase.end_time_unix_nano <= span.end_time_unix_nano + 1_000_000
    assert collector.requests[0][1]["Authorization"] == "Bearer of-a-test"


def test_a_traceparent_is_gone_on_with_or_obeyed(server: Server, collector: Collector) -> None:
    wire = server.wire
    body = {"templateID": "base", "timeout": 60}
    seen = wire.call("POST", "/sandboxes", body, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}).json()
    unseen = wire.call("POST", "/sandboxes", body, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}).json()
    span = eventually(lambda: named(collector, "create", seen["sandboxID"]), 20)
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == PARENT
    for made in (seen, unseen):
        assert wire.call("DELETE", f"/sandboxes/{made['sandboxID']}").status == 204
    eventually(lambda: named(collector, "kill", unseen["sandboxID"]), 20)
    assert named(collector, "create", unseen["sandboxID"]) is None
    headers = {"X-Admin-Token": server.admin, "Accept": "application/openmetrics-text"}
    text = wire.call("GET", "/metrics", headers=headers, with_key=False).text
    assert f'trace_id="{TRACE}"' in text  # an exemplar


def test_metrics_are_those_of_prometheus(server: Server, collector: Collector) -> None:
    found = eventually(collector.metrics, 20)
    told = {line.split()[2] for line in server.figures().splitlines() if line.startswith("# TYPE")}
    assert {"cloche_" + name.removeprefix("cloche.") for name in found} == {n.removesuffix("_total") for n in told}
    requests = found["cloche.requests"]
    assert requests.sum.is_monotonic
    assert requests.sum.aggregation_temporality == 2
    point = found["cloche.request_seconds"].histogram.data_points[0]
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert sum(point.bucket_counts) == point.count


def exporters(server: Server) -> list[int]:
    return [pid for pid in children(server.pid) if user_of(pid) == EXPORTER_USER]


def test_a_refusal_is_repeated_and_the_role_has_no_rights(server: Server, collector: Collector) -> None:
    collector.answers += [503, 429]
    box = server.wire.create(timeout=60)
    box.kill()
    eventually(lambda: named(collector, "kill", box.id), 30, state=server.log)
    (role,) = exporters(server)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{role}/status").read_text().splitlines())
    assert status["CapEff"].strip() == "0" * 16
    assert status["Seccomp"].strip() == "2"
    assert sorted(os.listdir(f"/proc/{role}/root")) == ["etc"]


def test_nobody_waits_for_a_collector_that_is_not_there() -> None:
    with own_server("--otlp-endpoint", "http://127.0.0.1:9", "--otlp-batch-ms", "10", "--gates", "1") as made:
        for _ in range(20):
            made.wire.create(timeout=60).kill()
        eventually(lambda: "telemetry to http://127.0.0.1:9" in made.log(), 20, state=made.log)
        assert len(exporters(made)) == 1


def test_nothing_runs_where_it_is_off() -> None:
    with own_server("--gates", "1", "--pool", "0") as made:
        made.wire.create(timeout=60).kill()
        assert exporters(made) == []
