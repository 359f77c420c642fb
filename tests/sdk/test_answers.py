# SPDX-License-Identifier: Apache-2.0
"""Answers of a real server are what sdk/schema/json says; fields that it does not know are refused."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from table import ROOT

sys.path.insert(0, str(ROOT / "tests/e2e/python"))
from support.schema import check
from support.wire import INTERPRETER_PORT, RawBox, Wire

EVENTS = {
    "number_of_executions": "CountEvent", "stdout": "OutputEvent", "stderr": "OutputEvent", "result": "ResultEvent",
    "error": "ErrorEvent", "end_of_execution": "EndEvent", "keepalive": "EndEvent",
}  # fmt: skip
PATIENCE = 20  # seconds until a sample or a log line is there


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="module")
def cell(wire: Wire) -> Iterator[RawBox]:
    made = wire.create("code-interpreter-v1", timeout=120, metadata={"a": "b"})
    yield made
    made.kill()


def until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.1)  # between two looks
    return found


def get(wire: Wire, path: str) -> Any:
    answer = wire.call("GET", path)
    assert answer.status == 200, (path, answer.status, answer.body)
    return answer.json()


def test_sandboxes(wire: Wire, cell: RawBox) -> None:
    check("Sandbox", cell.made, wire.call("POST", f"/sandboxes/{cell.id}/connect", {"timeout": 60}).json())
    check("SandboxInfo", get(wire, f"/sandboxes/{cell.id}"))
    check("ListedSandbox", *get(wire, "/v2/sandboxes"))
    check("SandboxMetrics", *until(lambda: get(wire, f"/sandboxes/{cell.id}/metrics")))


def test_a_paused_sandbox_with_a_network(wire: Wire) -> None:
    network = {"allowOut": ["192.0.2.1"], "denyOut": ["0.0.0.0/0"], "dnsServers": ["192.0.2.53"], "httpsPorts": [8443],
               "maskRequestHost": "x.test", "allowPublicTraffic": False}  # fmt: skip
    more = {"network": network, "autoPause": True, "allow_internet_access": True}
    box = wire.create("base", path="/v2/sandboxes", timeout=60, **more)
    try:
        check("Sandbox", box.made)
        check("SandboxInfo", get(wire, f"/sandboxes/{box.id}"))
        assert wire.call("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
        check("SandboxInfo", get(wire, f"/sandboxes/{box.id}"))
        check("ListedSandbox", *get(wire, "/v2/sandboxes?state=paused"))
    finally:
        box.kill()


def test_logs_and_events(wire: Wire, cell: RawBox) -> None:
    cell.execute("print('logged')")
    check("SandboxLogEntry", *until(lambda: get(wire, f"/v2/sandboxes/{cell.id}/logs")["logs"]))
    check("SandboxEvent", *get(wire, f"/events/sandboxes/{cell.id}"))


def test_cells_and_contexts(cell: RawBox) -> None:
    code = """
import sys, matplotlib.pyplot as plt, pandas as pd
print(1); print(2, file=sys.stderr)
display({"text/html": "h", "text/markdown": "m", "image/svg+xml": "s", "image/png": "aGk=", "image/jpeg": "aGk=",
         "application/pdf": "aGk=", "text/latex": "l", "application/json": {"a": 1}, "application/javascript": "j",
         "application/x-own": "o"}, raw=True)
plt.plot([1, 2]); plt.show()
plt.bar(["a"], [1]); plt.show()
display(pd.DataFrame({"a": [1]}))
1/0
"""
    events = cell.execute(code)
    assert {event["type"] for event in events} == set(EVENTS) - {"keepalive"}
    for event in events:
        check(EVENTS[event["type"]], event)
    contexts = cell.port(INTERPRETER_PORT, "GET", "/contexts", None, {"X-Access-Token": cell.token}).json()
    check("Context", *contexts)


def test_entries(cell: RawBox) -> None:
    cell.run("mkdir -p /tmp/m/d; echo x >/tmp/m/f; ln -s f /tmp/m/l; ln -s none /tmp/m/broken")
    listed = cell.rpc("filesystem.Filesystem/ListDir", {"path": "/tmp/m", "depth": 1}).json()["entries"]
    assert len(listed) == 4
    check("EntryInfo", *listed)


def test_templates(wire: Wire) -> None:
    name = "m" + uuid.uuid4().hex[:10]
    made = wire.call("POST", "/v3/templates", {"name": name, "tags": ["one"], "cpuCount": 1, "memoryMB": 512}).json()
    steps = [{"type": "RUN", "args": ["exit 3"], "force": False}]
    begun = {"fromTemplate": "base", "steps": steps, "force": False}
    path = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    assert wire.call("POST", f"/v2{path}", begun).status == 202
    ended = until(lambda: (s := get(wire, f"{path}/status?logsOffset=0"))["status"] == "error" and s)
    check("BuildStatus", ended)
    check("TemplateInfo", *get(wire, "/templates"))
    check("TemplateTag", *get(wire, "/templates/base/tags"))
    wire.call("DELETE", f"/templates/{made['templateID']}")


def test_volumes(wire: Wire) -> None:
    made = wire.call("POST", "/volumes", {"name": "m" + uuid.uuid4().hex[:10]}).json()
    try:
        check("VolumeAndToken", made, get(wire, f"/volumes/{made['volumeID']}"))
        check("VolumeInfo", *get(wire, "/volumes"))
        key = {"Authorization": f"Bearer {made['token']}"}
        content = f"/volumecontent/{made['volumeID']}"
        put = wire.call("PUT", f"{content}/file?path=%2Ff", b"x", key, with_key=False)
        assert put.status in (200, 201), put.body
        check("VolumeEntryStat", put.json())
        check("VolumeEntryStat", *wire.call("GET", f"{content}/dir?path=%2F", None, key, with_key=False).json())
    finally:
        wire.call("DELETE", f"/volumes/{made['volumeID']}")


def test_secrets_snapshots_and_errors(wire: Wire, cell: RawBox) -> None:
    made = wire.call("POST", "/secrets", {"name": "m" + uuid.uuid4().hex[:10], "value": "x", "metadata": {}}).json()
    check("SecretInfo", made, *get(wire, "/secrets"))
    assert wire.call("DELETE", f"/secrets/{made['secretID']}").status == 204
    kept = wire.call("POST", f"/sandboxes/{cell.id}/snapshots", {}).json()
    check("SnapshotInfo", kept, *get(wire, "/snapshots"))
    wire.call("DELETE", f"/templates/{kept['snapshotID']}")
    check("Error", wire.call("GET", "/sandboxes/iaaaaaaaaaaaaaaaaaaaa").json(), wire.call("GET", "/nothing").json())
    check("Error", wire.call("GET", "/v2/sandboxes", with_key=False).json())
