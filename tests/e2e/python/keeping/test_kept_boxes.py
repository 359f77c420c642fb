# SPDX-License-Identifier: Apache-2.0
"""The very box in which a build failed, kept on request: its processes, files, mounts and variables as the step left
them."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator

import pytest

from support.recipes import Order, fresh, order, run, step
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import RawBox, Wire


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server(start=False) as made:
        yield made


def kept(build: Order) -> RawBox:
    """Told in the log, and with the reason of the failure; anybody with a key of the team may connect."""
    reason = build.failed()
    lines = [entry["message"] for entry in reason["logEntries"]]
    found = re.search(r"is kept as sandbox (i[a-z0-9]{20}) for \d+ s", "\n".join(lines))
    assert found, lines
    got = build.wire.call("POST", f"/sandboxes/{found[1]}/connect", {"timeout": 120})
    assert got.status in (200, 201), got.body
    return RawBox(build.wire, got.json())


def listed(wire: Wire) -> set[str]:
    return {box["sandboxID"] for box in wire.call("GET", "/sandboxes").json()}


FAILS = "sleep 1000 & echo $! > ~/sleeper; echo inside > /dev/shm/file; echo half > /tmp/half; exit 3"


def test_it_is_the_box_itself(wire: Wire) -> None:
    build = order(wire, fresh("very"), step("ENV", "WORD", "here"), step("WORKDIR", "/srv/w"), run(FAILS), keep=True)
    box = kept(build)
    try:
        assert box.id in listed(wire)
        code, out, errors = box.run(
            "pwd; echo $WORD; id -un; cat /tmp/half /dev/shm/file; ps -o args= -p $(cat ~/sleeper)"
        )
        assert code == 0, errors
        assert out == "/srv/w\nhere\nuser\nhalf\ninside\nsleep 1000\n"
        assert box.run("echo $E2B_SANDBOX_ID")[1] == f"{box.id}\n"
    finally:
        assert box.kill() == 204
    assert box.id not in listed(wire)
    files = build.box("failed")
    try:
        assert files.run("cat /tmp/half")[1] == "half\n"
    finally:
        files.kill()


def test_a_start_command_still_runs_in_it(server: Server) -> None:
    server.start("--build-seconds", "12", "--pool", "0")
    build = order(
        server.wire, fresh("start"), run("echo step > ~/step"), keep=True,
        startCmd="exec python3 -m http.server 8700", readyCmd="false",
    )  # fmt: skip
    box = kept(build)
    assert box.port(8700, path="/step").text == "step\n"
    box.kill()


def test_cancelled_builds_keep_no_box(wire: Wire) -> None:
    name = fresh("cancelled")
    old = order(wire, name, run("echo here; sleep 100"), keep=True)
    eventually(lambda: any("[stdout]: here" in line for line in old.log()))
    order(wire, name, run("true")).ready()
    assert "cancel" in old.failed()["message"]
    assert not any("is kept as sandbox" in line for line in old.log())


def test_it_lives_as_long_as_was_set_and_is_found_after_a_crash(server: Server) -> None:
    server.start("--keep-box-seconds", "25", "--pool", "0")
    build = order(server.wire, fresh("timed"), run("echo 1 > /tmp/one; exit 1"), keep=True)
    reason = build.failed()
    found = re.search(r"sandbox (i[a-z0-9]{20}) for 25 s", str(reason["logEntries"]))
    assert found, reason
    began = time.monotonic()
    server.signal(signal.SIGKILL)
    server.start("--pool", "0")
    if time.monotonic() - began < 15:
        assert found[1] in listed(server.wire)
    eventually(lambda: found[1] not in listed(server.wire))
    eventually(lambda: not [e for e in (server.data / "boxes").iterdir() if e.name.startswith("build-")])


def test_a_build_that_is_out_of_time_is_caught_in_the_act(server: Server) -> None:
    server.start("--build-seconds", "8", "--pool", "0")
    build = order(server.wire, fresh("late"), run("exec -a stuck sleep 1000"), keep=True)
    box = kept(build)
    assert box.run("pgrep -f ^stuck")[0] == 0
    box.kill()


def test_it_sleeps_and_is_copied_like_any_other(wire: Wire) -> None:
    build = order(wire, fresh("sleeps"), run("echo before > ~/f; exit 1"), keep=True)
    box = kept(build)
    box.run("rm ~/f; echo mine > ~/g")
    assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status in (200, 201)
    assert box.run("ls ~/f; cat ~/g")[1] == "mine\n"
    shot = wire.call("POST", f"/sandboxes/{box.id}/snapshots", {})
    assert shot.status == 201, shot.body
    box.kill()
    copy = wire.create(shot.json()["snapshotID"])
    try:
        assert copy.run("ls ~/f; cat ~/g")[1] == "mine\n"
    finally:
        copy.kill()


def test_a_team_without_room_keeps_the_files(server: Server) -> None:
    server.start("--team-boxes-max", "1", "--pool", "0")
    busy = server.wire.create("base")
    build = order(server.wire, fresh("full"), run("echo here > ~/here; exit 1"), keep=True)
    reason = build.failed()
    assert "not kept, only its files are" in str(reason["logEntries"])
    assert "maximum" in str(reason["logEntries"])
    busy.kill()
    box = build.box("failed")
    assert box.run("cat ~/here")[1] == "here\n"
    box.kill()
