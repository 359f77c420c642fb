# SPDX-License-Identifier: Apache-2.0
"""What older stock clients send and read; tests/e2e/matrix runs the clients themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.wire import RawBox, Wire

TEMPLATE_KEYS = (
    "aliases", "buildCount", "buildID", "cpuCount", "createdAt", "createdBy", "diskSizeMB", "envdVersion",
    "lastSpawnedAt", "memoryMB", "public", "spawnCount", "templateID", "updatedAt",
)  # fmt: skip


@pytest.fixture(scope="module")
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=300)
    yield made
    made.kill()


def test_connect_with_the_headers_of_the_agent_is_the_apis(wire: Wire, box: RawBox) -> None:
    """PyPI e2b 2.7 to 2.26."""
    path = f"/sandboxes/{box.id}/connect"
    running = wire.call("POST", path, {"timeout": 300}, box.routing(49983))
    assert running.status == 200, running.text
    assert running.json()["sandboxID"] == box.id
    assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    woken = wire.call("POST", path, {"timeout": 300}, box.routing(49983))
    assert woken.status == 201, woken.text
    assert box.run("echo awake") == (0, "awake\n", "")


def test_a_path_of_the_api_with_headers_needs_a_right_key(wire: Wire, box: RawBox) -> None:
    path = f"/sandboxes/{box.id}/connect"
    wrong = wire.call("POST", path, {"timeout": 300}, box.routing(49983) | {"X-API-KEY": "e2b_wrong"})
    assert wrong.status == 401
    without = wire.call("POST", path, {"timeout": 300}, box.headers(), with_key=False)
    assert without.status == 404, "it went into the box"


def test_a_key_does_not_turn_traffic_to_a_box_into_the_apis(wire: Wire, box: RawBox) -> None:
    assert wire.call("GET", "/health", headers=box.headers()).status == 204, "the agent's, not the API's"
    closed = wire.call("GET", "/sandboxes", headers=box.routing(8123))
    assert (closed.status, "port is not open" in closed.text) == (502, True), closed.text


def test_a_build_is_asked_for_as_clients_before_2_6_do(wire: Wire, unique: str) -> None:
    asked = wire.call("POST", "/v2/templates", {"alias": unique, "cpuCount": 1, "memoryMB": 512})
    assert asked.status == 202, asked.text
    told = asked.json()
    assert [key for key in TEMPLATE_KEYS if key not in told] == []
    assert (told["aliases"], told["cpuCount"], told["memoryMB"]) == ([unique], 1, 512)
    built = wire.call("POST", f"/v2/templates/{told['templateID']}/builds/{told['buildID']}", {"fromTemplate": "base"})
    assert built.status == 202, built.text
    assert wire.call("POST", "/v2/templates", {"cpuCount": 1}).status == 400


@pytest.mark.parametrize(("method", "message"), [("Stat", {"path": "/etc/hosts"}), ("ListDir", {"path": "/etc"})])
def test_entries_for_clients_that_refuse_unknown_fields(box: RawBox, method: str, message: dict[str, str]) -> None:
    """PyPI e2b 1.0 to 1.5.0."""

    def keys(**headers: str) -> set[str]:
        told = box.rpc(f"filesystem.Filesystem/{method}", message, headers).json()
        entries = told["entries"] if "entries" in told else [told["entry"]]
        return set().union(*entries)

    assert keys(**{"User-Agent": "connect-python"}) == {"name", "type", "path"}
    assert {"size", "mode", "owner", "modifiedTime"} < keys(**{"User-Agent": "e2b-python-sdk/1.7.1"})


def test_a_token_alone_names_the_box(wire: Wire) -> None:
    """With E2B_SANDBOX_URL npm e2b 2.7 to 2.10 sends files and health checks without the sandbox's headers, PyPI e2b
    2.7
    to 2.20 everything after connect()."""
    made = wire.create(timeout=300)
    alone = {"X-Access-Token": made.token}

    def call(method: str, path: str, body: bytes | None = None, headers: dict[str, str] = alone) -> tuple[int, bytes]:
        answer = wire.call(method, path, body, headers, with_key=False)
        return answer.status, answer.body

    sent = {**alone, "Content-Type": "application/octet-stream"}
    assert call("POST", "/files?path=/home/user/f&username=user", b"by token", sent)[0] == 200
    assert call("GET", "/files?path=/home/user/f&username=user") == (200, b"by token")
    typed = {**alone, "Content-Type": "application/json"}
    listed = call("POST", "/filesystem.Filesystem/ListDir", b'{"path": "/home/user"}', typed)
    assert (listed[0], b'"/home/user/f"' in listed[1]) == (200, True), listed
    assert call("POST", "/process.Process/List", b"{}", typed)[0] == 200
    assert call("GET", "/health")[0] == 204
    assert call("GET", "/health", headers={})[0] == 200, "the server's own"
    wrong = {"X-Access-Token": made.token[:-1] + ("0" if made.token[-1] != "0" else "1")}
    for headers in (wrong, {"X-Access-Token": "x"}):
        status, body = call("GET", "/files?path=/home/user/f", headers=headers)
        assert (status, b"was not found" in body) == (502, True), body
    made.kill()
    status, body = call("GET", "/health")
    assert (status, b"was not found" in body) == (502, True), body
