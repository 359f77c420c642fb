# SPDX-License-Identifier: Apache-2.0
"""Traces, metrics and logs over OTLP: what a collector gets is read by OpenTelemetry's own messages, strictly."""

from __future__ import annotations

import base64
import json
import os
import shlex
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.paused import connect, pause
from support.recipes import Order, fresh, run
from support.server import Server, children, own_server, user_of
from support.tenants import two_teams
from support.waiting import eventually

EXPORTER_USER = 64996  # the setting otlp_uid
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STRANGE = "f" * 32


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

    def logs(self) -> list[Any]:
        """Records of all requests so far."""
        found = []
        for path, _, body in self.requests:
            if path == "/v1/logs":
                message = json_format.ParseDict(with_bytes(body), ExportLogsServiceRequest())
                found += [s for r in message.resource_logs for scope in r.scope_logs for s in scope.log_records]
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


def test_a_build_is_traced_as_a_request_and_as_the_work(server: Server, collector: Collector) -> None:
    order = Order(server.wire, fresh("traced")).request().start(run("true")).ready()

    def of_build(name: str) -> Any:
        found = [s for s in collector.spans() if s.name == name]
        return next((s for s in found if attributes(s).get("cloche.build.id") == order.build), None)

    asked = eventually(lambda: of_build("build"), 20)
    work = eventually(lambda: of_build("build-run"), 20)
    assert {"gate", "warden"} == set(phases(collector, asked))
    inner = phases(collector, work)
    assert {"base", "steps", "finalize"} == set(inner)
    assert "http.response.status_code" not in attributes(work)
    assert attributes(work)["cloche.team.id"] == attributes(asked)["cloche.team.id"]
    assert work.status.code == 0
    assert inner["steps"].start_time_unix_nano >= inner["base"].end_time_unix_nano


def test_a_traceparent_is_gone_on_with_or_obeyed(server: Server, collector: Collector) -> None:
    wire = server.wire
    body = {"templateID": "base", "timeout": 60}
    seen = wire.call("POST", "/sandboxes", body, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}).json()
    unseen = wire.call("POST", "/sandboxes", body, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}).json()
    span = eventually(lambda: named(collector, "create", seen["sandboxID"]), 20)
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == PARENT
    stranger = {"traceparent": f"00-{STRANGE}-{PARENT}-01"}
    assert wire.call("POST", "/sandboxes", body, headers=stranger, with_key=False).status == 401
    wrong = stranger | {"X-API-Key": "e2b_" + "0" * 40}
    assert wire.call("POST", "/sandboxes", body, headers=wrong, with_key=False).status == 401
    for made in (seen, unseen):
        assert wire.call("DELETE", f"/sandboxes/{made['sandboxID']}").status == 204
    eventually(lambda: named(collector, "kill", unseen["sandboxID"]), 20)
    assert named(collector, "create", unseen["sandboxID"]) is None
    assert STRANGE not in {s.trace_id.hex() for s in collector.spans()}
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


def printed(collector: Collector, box: str, text: str) -> list[Any]:
    mine = [r for r in collector.logs() if attributes(r).get("cloche.sandbox.id") == box]
    return [r for r in mine if text in r.body.string_value]


def test_what_sandboxes_print_is_exported_under_their_own_name() -> None:
    collector = Collector()
    flags = ("--otlp-endpoint", collector.url, "--otlp-logs", "1", "--otlp-batch-ms", "100")
    with own_server(*flags, "--gates", "1", "--pool", "0") as made:
        teams = two_teams(made)
        mine, other = made.wire.create(timeout=300), teams.attacker.create(timeout=300)
        mine.run("echo first of mine; echo to stderr >&2")
        other.run("echo of the other")
        (first,) = eventually(lambda: printed(collector, mine.id, "first of mine"), 30, state=made.log)
        (theirs,) = eventually(lambda: printed(collector, other.id, "of the other"), 30, state=made.log)
        assert (first.severity_number, attributes(first)["log.iostream"]) == (9, "stdout")
        assert abs(first.time_unix_nano / 1e9 - time.time()) < 120
        assert attributes(first)["cloche.team.id"] != attributes(theirs)["cloche.team.id"]

        # Root of a box writes nonsense into its own ring: nobody else's lines are touched, and no other name is told.
        claim = {"t": int(time.time() * 1e6), "l": "info", "m": "forged", "id": mine.id, "cloche.sandbox.id": mine.id}
        script = (
            "import json,struct\n"
            f"line = {json.dumps(json.dumps(claim))}.encode() + b'\\n'\n"
            "ring = open('/dev/shm/.cloche-log', 'r+b')\n"
            "ring.write(b'CLOCHLOG' + struct.pack('<QQ', 1 << 20, len(line)))\n"
            "ring.seek(64); ring.write(line); ring.flush()\n"
            "ring.seek(16); ring.write(struct.pack('<Q', (1 << 64) - 1))\n"
        )
        other.run(f"python3 -c {shlex.quote(script)}", user="root")
        mine.run("echo second of mine")
        eventually(lambda: printed(collector, mine.id, "second of mine"), 30, state=made.log)
        assert printed(collector, mine.id, "forged") == []

        # A pause ends a run and a resume begins one: no line comes twice, and the last words of an end come.
        assert pause(mine).status == 204
        assert connect(mine).status == 201
        mine.run("echo third of mine")
        mine.kill()
        eventually(lambda: printed(collector, mine.id, "third of mine"), 30, state=made.log)
        for text in ("first of mine", "second of mine", "third of mine"):
            assert len(printed(collector, mine.id, text)) == 1, text
        (role,) = exporters(made)
        other.kill()
        eventually(lambda: rings_of(role) == 0, 60, state=made.log)
    collector.shutdown()


def rings_of(pid: int) -> int:
    """Log rings that a process has open."""
    return sum(".cloche-log" in os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir())


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
