# SPDX-License-Identifier: Apache-2.0
"""Builds that are interrupted, and what is left to look at when one fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recipes import Order, fresh, run
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import Wire


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server() as made:
        yield made


def under_way(wire: Wire, name: str) -> Order:
    """A build whose second step has begun."""
    build = Order(wire, name).request().start(run("echo first"), run("echo second; sleep 60"))
    eventually(lambda: any("]: second" in line for line in build.log()))
    return build


def boxes_of_builds(server: Server) -> list[str]:
    return [entry.name for entry in (server.data / "boxes").iterdir() if entry.name.startswith("build-")]


def half_layers(server: Server) -> list[Path]:
    return list((server.data / "layers").glob(".new-*"))


def test_a_killed_warden_fails_what_it_built_and_builds_again(server: Server) -> None:
    name = fresh("crash")
    build = under_way(server.wire, name)
    waiting = Order(server.wire, fresh("waits")).request()
    before = build.log()
    (warden,) = server.wardens()
    os.kill(warden, signal.SIGKILL)
    eventually(lambda: server.wardens() not in ([], [warden]))
    eventually(lambda: server.wire.call("GET", "/health").status == 200)
    now = build.status()
    assert now["status"] == "error"
    assert "interrupted" in now["reason"]["message"]
    assert [entry["message"] for entry in now["logEntries"]] == before
    assert not boxes_of_builds(server)
    assert not half_layers(server)
    assert server.wire.call("POST", "/sandboxes", {"templateID": name}).status == 404
    waiting.start(run("true")).ready()
    again = Order(server.wire, name).request().start(run("echo first"), run("echo other")).ready()
    assert any(line.startswith("CACHED [builder 1/2]") for line in again.log())


def test_a_killed_warden_fails_a_dockerfile_of_old_clients_and_builds_it_again(server: Server) -> None:
    """POST /templates, POST /templates/{id}, POST /templates/{id}/builds/{b}: what waits keeps its Dockerfile."""
    wire, name = server.wire, fresh("old-crash")
    dockerfile = "FROM e2bdev/base\nRUN echo first > /first\nRUN echo second; {}\n"

    def asked(path: str, body: dict[str, str]) -> Order:
        got = wire.call("POST", path, body)
        assert got.status == 202, got.text
        return Order(wire, name, made=got.json())

    def begin(build: Order) -> Order:
        got = wire.call("POST", f"/templates/{build.template}/builds/{build.build}")
        assert got.status == 202, got.text
        return build

    build = begin(asked("/templates", {"dockerfile": dockerfile.format("sleep 60"), "alias": name}))
    eventually(lambda: any("]: second" in line for line in build.log()))
    waiting = asked("/templates", {"dockerfile": "FROM e2bdev/base\nRUN echo kept > /said\n", "alias": fresh("waits")})
    (warden,) = server.wardens()
    os.kill(warden, signal.SIGKILL)
    eventually(lambda: server.wardens() not in ([], [warden]))
    eventually(lambda: wire.call("GET", "/health").status == 200)
    now = build.status()
    assert (now["status"], "interrupted" in now["reason"]["message"]) == ("error", True), now
    assert not boxes_of_builds(server)
    assert not half_layers(server)
    assert wire.call("POST", f"/templates/{build.template}/builds/{build.build}").status == 400, "it is over"
    assert wire.call("POST", "/sandboxes", {"templateID": name}).status == 404
    again = begin(asked(f"/templates/{build.template}", {"dockerfile": dockerfile.format("true")})).ready()
    assert (again.template, again.build != build.build) == (build.template, True)
    assert any(line.startswith("CACHED [builder ") and "/first" in line for line in again.log()), again.log()
    begin(waiting).ready()
    box = wire.create(waiting.template)
    try:
        assert box.run("cat /said")[1] == "kept\n"
    finally:
        box.kill()


def test_a_build_goes_on_after_an_orderly_restart(server: Server) -> None:
    """SIGTERM, as an upgrade of the package sends it: finished steps are not done again, the log is continued."""
    name = fresh("upgrade")
    build = Order(server.wire, name).request().start(run("echo first"), run("echo second; sleep 6; echo ok > ~/said"))
    waiting = Order(server.wire, fresh("waits")).request()
    eventually(lambda: any("]: second" in line for line in build.log()))
    before = build.log()
    server.signal(signal.SIGTERM)
    server.start()
    build.wire = waiting.wire = server.wire
    build.ready()
    after = build.log()
    assert after[: len(before)] == before
    assert any(line.startswith("CACHED [builder 1/2]") for line in after[len(before) :]), after
    assert waiting.status()["status"] == "waiting"
    box = server.wire.create(name)
    try:
        assert box.run("cat ~/said")[1] == "ok\n"
    finally:
        box.kill()
    assert not half_layers(server)


def test_a_server_stopped_for_good_says_so_afterwards(server: Server) -> None:
    build = under_way(server.wire, fresh("stop"))
    server.stop()
    server.start()
    build.wire = server.wire
    now = build.status()
    assert (now["status"], "stopped" in now["reason"]["message"]) == ("error", True)
    assert not boxes_of_builds(server)


def test_a_deleted_template_takes_its_build_along(wire: Wire) -> None:
    build = under_way(wire, fresh("deleted"))
    assert wire.call("DELETE", f"/templates/{build.template}").status == 204
    path = f"/templates/{build.template}/builds/{build.build}/status"
    eventually(lambda: wire.call("GET", path).status == 400)


def test_what_a_failed_step_left_can_be_looked_at(wire: Wire) -> None:
    name = fresh("kept")
    build = Order(wire, name).request()
    build.start(run("echo whole > ~/whole"), run("echo half > ~/half; exit 3"), keep=True)
    assert build.failed()["step"] == "2"
    box = wire.create(f"{name}:failed")
    try:
        assert box.run("cat ~/whole ~/half")[1] == "whole\nhalf\n"
    finally:
        box.kill()
    again = Order(wire, name).request().start(run("echo whole > ~/whole"), run("echo half > ~/half; exit 3"))
    assert again.failed()["step"] == "2"  # a failed step is no cached one
    assert wire.call("POST", "/sandboxes", {"templateID": name}).status == 404


def test_a_crashing_start_command_may_be_debugged(wire: Wire) -> None:
    name = fresh("debug")
    broken = {"startCmd": "echo falling over; exit 7", "readyCmd": "false"}
    assert Order(wire, name).request().start(**broken).failed()["step"] == "finalize"
    Order(wire, name).request().start(**broken, debug=True).ready()
    box = wire.create(name)
    try:
        lines = wire.call("GET", f"/sandboxes/{box.id}/logs").json()["logEntries"]
        assert "falling over" in [entry["message"] for entry in lines]
    finally:
        box.kill()


def test_a_step_without_enough_memory_names_it(wire: Wire) -> None:
    build = Order(wire, fresh("hungry"), {"cpuCount": 1, "memoryMB": 256}).request()
    build.start(run("python3 -c \"x = b'a' * (1 << 30)\""))
    reason = build.failed()
    assert "256 MB" in reason["message"]
    assert reason["step"] == "1"
