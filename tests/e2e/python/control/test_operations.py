# SPDX-License-Identifier: Apache-2.0
"""What an operator sees: settings, figures, health, the access log, the administrator's routes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, binary, own_server
from support.waiting import eventually
from support.wire import Answer, RawBox, Wire

TOKEN = {"X-Admin-Token": "a token for a test"}


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(port: int) -> Iterator[Server]:
    with own_server(
        "--admin-token", TOKEN["X-Admin-Token"], "--metrics-listen", f"127.0.0.1:{port}",
        "--access-log-every", "1", "--box-connections-max", "2", "--gates", "1",
    ) as made:  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def box(server: Server) -> Iterator[RawBox]:
    made = server.wire.create(timeout=300)
    yield made
    made.kill()


def metrics(text: str) -> dict[str, float]:
    rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in rows}


def test_metrics_count_the_requests_that_were_made(server: Server, box: RawBox, port: int) -> None:
    before = metrics(server.wire.call("GET", "/metrics", headers=TOKEN, with_key=False).text)
    box.run("echo x")
    box.port(9, "GET", "/")
    after = metrics(server.wire.call("GET", "/metrics", headers=TOKEN, with_key=False).text)
    assert after['cloche_boxes{state="running"}'] == 1
    assert after['cloche_requests_total{class="create",status="2xx"}'] == 1
    assert after['cloche_request_seconds_count{class="create"}'] == 1
    assert after['cloche_request_seconds_bucket{class="create",le="+Inf"}'] == 1
    closed = 'cloche_edge_refused_total{reason="port_closed"}'
    assert after[closed] == before[closed] + 1
    agent = 'cloche_requests_total{class="agent",status="2xx"}'
    assert after[agent] > before.get(agent, 0)
    out = 'cloche_edge_bytes_total{direction="out"}'
    assert after[out] > before[out]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as plain:
        assert b"# TYPE cloche_boxes gauge" in plain.read()
    assert server.wire.call("GET", "/metrics", with_key=False).status == 401
    refused = server.wire.call("GET", "/metrics")  # figures of all teams are none of one team's key's business
    assert refused.status == 401, refused.body
    assert b"cloche_" not in refused.body


@pytest.mark.usefixtures("server")
def test_the_metrics_listener_serves_nothing_else(port: int) -> None:
    wire = Wire(f"http://127.0.0.1:{port}", None)
    for path in ("/health", "/readyz", "/livez"):
        assert wire.call("GET", path).status == 200
    for path in ("/v2/sandboxes", "/nodes", "/files?signature=x"):
        assert wire.call("GET", path).status == 404
    assert wire.call("POST", "/sandboxes", {"templateID": "base"}).status == 404


def test_health_in_three_words(server: Server) -> None:
    wire = server.wire
    got = wire.call("GET", "/health", with_key=False)
    assert (got.status, got.text) == (200, "Health check successful")
    assert wire.call("GET", "/readyz", with_key=False).status == 200
    assert wire.call("GET", "/livez", with_key=False).status == 200


def test_the_access_log_is_json_without_secrets(server: Server, box: RawBox) -> None:
    box.agent("GET", "/files?path=/etc/hostname&signature=hush")
    server.wire.call("GET", "/v2/sandboxes?limit=7")
    lines = [json.loads(line) for line in server.log().splitlines() if '"request"' in line]
    api = [line for line in lines if line["path"] == "/v2/sandboxes"][-1]
    assert api["method"] == "GET"
    assert api["status"] == "200"
    assert int(api["took_us"]) > 0
    edge = next(line for line in lines if line.get("box") == box.id and line["path"] == "/files")
    assert edge["status"].isdigit()
    assert "hush" not in server.log()
    assert box.token not in server.log()
    assert server.wire.key not in re.sub(r"export E2B_API_KEY=\S+", "", server.log())


def test_connections_into_one_box_are_capped(server: Server, box: RawBox) -> None:
    box.run("setsid nc -lk -p 8000 >/dev/null 2>&1 </dev/null & sleep 0.3")
    head = "GET / HTTP/1.1\r\nHost: x\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in box.routing(8000).items()) + "\r\n"
    links = [socket.create_connection(server.wire.address) for _ in range(2)]
    try:
        for link in links:
            link.sendall(head.encode())
        status, told = 0, {}
        for _ in range(50):
            got = box.agent("GET", "/health")
            status = got.status
            if status == 429:
                told = got.json()
                break
        assert status == 429
        assert told["connectionLimit"] == 2
        assert told["code"] == 429
        assert told["sandboxId"] == box.id
    finally:
        for link in links:
            link.close()


def test_the_administrators_routes_need_the_token(server: Server, wire: Wire) -> None:
    for path in ("/nodes", "/admin/sandboxes/running-counts", "/admin/teams", "/admin/doctor"):
        assert server.wire.call("GET", path).status == 401
        assert server.wire.call("GET", path, headers={"X-Admin-Token": "wrong"}).status == 401
        assert server.wire.call("GET", path, headers=TOKEN, with_key=False).status == 200
        assert wire.call("GET", path, headers=TOKEN).status == 403


def test_the_node_and_its_counts(server: Server, box: RawBox) -> None:
    nodes = server.wire.call("GET", "/nodes", headers=TOKEN).json()
    assert len(nodes) == 1
    assert nodes[0]["status"] == "ready"
    assert nodes[0]["sandboxCount"] == 1
    assert nodes[0]["metrics"]["cpuCount"] >= 1
    assert nodes[0]["metrics"]["memoryTotalBytes"] > 0
    one = server.wire.call("GET", f"/nodes/{nodes[0]['id']}", headers=TOKEN)
    assert one.json()["id"] == nodes[0]["id"]
    assert server.wire.call("GET", "/nodes/ghost", headers=TOKEN).status == 404
    counts = server.wire.call("GET", "/admin/sandboxes/running-counts", headers=TOKEN).json()
    assert sum(counts.values()) == 1


def node(server: Server) -> dict:
    return server.wire.call("GET", "/nodes/local", headers=TOKEN).json()


def set_node(server: Server, status: str) -> Answer:
    return server.wire.call("POST", "/nodes/local", {"status": status}, TOKEN)


def test_a_node_that_drains_takes_no_sandboxes_and_keeps_those_it_has(server: Server, box: RawBox) -> None:
    sleeper = server.wire.create(timeout=300)
    assert server.wire.call("POST", f"/sandboxes/{sleeper.id}/pause").status == 204
    try:
        assert set_node(server, "draining").status == 204
        assert node(server)["status"] == "draining"
        refused = server.wire.call("POST", "/sandboxes", {"templateID": "base"})
        assert refused.status == 503, refused.text
        assert "drained" in refused.json()["message"]
        assert int(refused.headers["retry-after"]) >= 1
        assert server.wire.call("POST", f"/sandboxes/{sleeper.id}/resume", {"timeout": 60}).status == 503
        assert box.run("echo on")[1] == "on\n"
        (warden,) = server.wardens()
        os.kill(warden, signal.SIGKILL)
        eventually(lambda: server.wardens() not in ([], [warden]))
        assert node(server)["status"] == "draining"  # maintenance includes restarts
        assert box.run("echo on")[1] == "on\n"
    finally:
        assert set_node(server, "ready").status == 204
    assert node(server)["status"] == "ready"
    assert server.wire.call("POST", f"/sandboxes/{sleeper.id}/resume", {"timeout": 60}).status == 201
    sleeper.kill()


def test_a_node_is_set_to_a_status_that_can_be_set(server: Server) -> None:
    for status in ("unhealthy", "", 5):
        got = server.wire.call("POST", "/nodes/local", {"status": status}, TOKEN)
        assert got.status == 400, got.text
        assert "draining" in got.json()["message"]
    assert server.wire.call("POST", "/nodes/ghost", {"status": "ready"}, TOKEN).status == 404
    assert server.wire.call("POST", "/nodes/local", {"status": "draining"}).status == 401
    assert node(server)["status"] == "ready"


def test_the_command_drains_by_pausing_what_runs(server: Server, box: RawBox) -> None:
    def command(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [binary(), "node", *words, "--data", str(server.data)], capture_output=True, text=True, check=False,
        )  # fmt: skip

    try:
        waited = command("drain", "--wait", "0")
        assert (waited.returncode, "still run" in waited.stdout) == (3, True), waited
        paused = command("drain", "--pause", "--wait", "60")
        assert paused.returncode == 0, paused
        assert f"{box.id} paused" in paused.stdout
        assert re.search(r"^local +draining .* 0 +1 ", command("list").stdout, re.M)
    finally:
        assert command("ready").returncode == 0
    assert server.wire.call("POST", f"/sandboxes/{box.id}/resume", {"timeout": 300}).status == 201
    assert "not 'away'" in command("away").stderr


def test_an_administrator_reads_and_sets_the_limits_of_teams(server: Server) -> None:
    def call(method: str, path: str, body: dict | None = None) -> Answer:
        return server.wire.call(method, path, body, TOKEN, with_key=False)

    made = call("POST", "/admin/teams", {"name": "bounded", "limits": {"sandboxes": 1}})
    assert made.status == 201, made.text
    path = f"/admin/teams/{made.json()['teamID']}"
    assert {"sandboxes": 1, "snapshots": 0}.items() <= made.json()["limits"].items()
    key = call("POST", f"{path}/api-keys", {"name": "of the team"}).json()["key"]
    team = Wire(server.url, key)
    own = team.create(timeout=60)
    refused = team.call("POST", "/v2/sandboxes", {"templateID": "base"})
    assert refused.status == 429, refused.text
    assert call("GET", path).json()["runningSandboxes"] == 1
    changed = call("PATCH", path, {"name": "larger", "limits": {"sandboxes": 2}})
    assert (changed.status, changed.json()["name"], changed.json()["limits"]["sandboxes"]) == (200, "larger", 2)
    other = team.create(timeout=60)
    assert [one["runningSandboxes"] for one in call("GET", "/admin/teams").json() if one["name"] == "larger"] == [2]
    for box in (own, other):
        box.kill()
    for wrong in ({"limits": {"boxes": 1}}, {"limits": {"sandboxes": -1}}, {"limits": [1]}, {"name": ""}):
        assert call("PATCH", path, wrong).status == 400, wrong
    assert call("PATCH", "/admin/teams/00000000-0000-4000-8000-000000000000", {"name": "x"}).status == 404
    assert call("GET", "/admin/teams/nobody").status == 404
    assert call("POST", "/admin/teams", {"limits": {}}).status == 400


def test_the_doctor_examines_the_machine_under_a_running_server(server: Server) -> None:
    told = server.wire.call("GET", "/admin/doctor", headers=TOKEN, with_key=False)
    assert told.status == 200, told.text
    assert {"root", "kernel", "overlay"} <= {check["id"] for check in told.json()["checks"]}
    assert told.json()["capacity"]["idle"] > 0


def test_an_administrator_ends_a_teams_boxes_and_makes_keys(server: Server) -> None:
    team = server.wire.call("GET", "/teams").json()[0]["teamID"]
    made = server.wire.call(
        "POST", f"/admin/teams/{team}/api-keys", {"name": "by admin"}, TOKEN, with_key=False
    )
    assert made.status == 201
    assert Wire(server.url, made.json()["key"]).call("GET", "/v2/sandboxes").status == 200
    path = f"/admin/teams/{team}/api-keys/{made.json()['id']}"
    assert server.wire.call("DELETE", path, headers=TOKEN).status == 204
    doomed = server.wire.create(timeout=60)
    path = f"/admin/teams/{team}/sandboxes/kill"
    told = server.wire.call("POST", path, headers=TOKEN).json()
    assert told["killedCount"] >= 1
    assert told["failedCount"] == 0
    gone = server.wire.call("GET", f"/sandboxes/{doomed.id}")
    assert gone.status == 404
    assert "administrator" in gone.json()["message"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--box-max", "7"], "boxes_max"),
        (["--boxes-max", "many"], "whole number"),
        (["--metrics-listen", "nowhere"], "ADDRESS:PORT"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, words: list[str], said: str) -> None:
    done = subprocess.run(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path), *words],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert said in done.stderr


def test_the_settings_in_force_are_printed_without_secrets() -> None:
    done = subprocess.run(
        [binary(), "serve", "--admin-token", "hush", "--boxes-max", "7", "--print-config"],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert "boxes_max = 7" in done.stdout
    assert "hush" not in done.stdout
