# SPDX-License-Identifier: Apache-2.0
"""Why a sandbox is gone: the edge says when and why it ended, the API also by which key."""

from __future__ import annotations

import json
import re

import e2b
import pytest

from support.commands import cloche
from support.waiting import eventually
from support.wire import AGENT_PORT, RawBox, Wire

WHEN = r"it ended at \d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00), "


def told(box: RawBox, port: int = AGENT_PORT) -> str:
    got = box.port(port)
    assert got.status == 502, got.body
    assert (got.json()["sandboxId"], got.json()["code"]) == (box.id, 502)
    return got.json()["message"]


def says(message: str, cause: str) -> bool:
    return re.fullmatch(f"The sandbox was not found: {WHEN}{cause}", message) is not None


def test_a_killed_box_names_the_key_to_its_team_only(wire: Wire, unique: str) -> None:
    made = wire.call("POST", "/api-keys", {"name": f"killer-{unique}"}).json()
    box = wire.create(timeout=60)
    assert Wire(wire.url, made["key"]).call("DELETE", f"/sandboxes/{box.id}").status == 204
    for port in (AGENT_PORT, 8000):
        assert says(told(box, port), "killed: by request"), told(box, port)
    api = wire.call("GET", f"/sandboxes/{box.id}").json()["message"]
    assert f"killed: by API key 'killer-{unique}'" in api
    assert wire.call("DELETE", f"/api-keys/{made['id']}").status == 204


def test_a_box_killed_on_the_host_says_so(wire: Wire) -> None:
    box = wire.create(timeout=60)
    cloche("kill", box.id)
    assert says(told(box), "killed: by the root user of the host"), told(box)


def test_a_box_whose_time_is_over_says_how_long_it_was(wire: Wire) -> None:
    box = wire.create(timeout=1)
    eventually(lambda: box.port(AGENT_PORT).status == 502)
    assert says(told(box), "timeout: its lifetime of 1 s was over"), told(box)


def test_a_request_in_flight_learns_why_the_box_ended(wire: Wire) -> None:
    box = wire.create(timeout=60)
    script = (
        "import socket,time; s=socket.create_server(('0.0.0.0',8000)); c=s.accept(); "
        "open('/tmp/came','w'); time.sleep(60)"
    )
    box.run(f'(setsid python3 -c "{script}" >/dev/null 2>&1 &)')
    connection = wire.connect()
    connection.request("GET", "/", headers=box.headers(8000))
    eventually(lambda: box.run("test -e /tmp/came")[0] == 0)
    box.kill()
    response = connection.getresponse()
    assert response.status == 502
    message = json.loads(response.read())["message"]
    assert says(message, "killed: by request"), message
    connection.close()


def test_the_stock_client_shows_the_cause(unique: str) -> None:
    box = e2b.Sandbox.create("base", timeout=60)
    box.kill()
    with pytest.raises(e2b.TimeoutException, match=r"it ended at \S+, killed: by request") as caught:
        box.files.read("/etc/hostname")
    assert "was not found" in str(caught.value)
    with pytest.raises(e2b.TimeoutException, match=r"it ended at \S+, killed: by request"):
        box.commands.run("true")


def test_the_stock_client_shows_that_the_time_was_over() -> None:
    box = e2b.Sandbox.create("base", timeout=1)
    eventually(lambda: not box.is_running())
    with pytest.raises(e2b.TimeoutException, match=r"timeout: its lifetime of 1 s was over"):
        box.commands.run("true")
