# SPDX-License-Identifier: Apache-2.0
"""Builds that are stopped - cancelled, or out of time - wherever they are, and logs that are read on while they
grow."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from support.recipes import Order, fresh, order, run
from support.server import Server, binary, own_server
from support.waiting import eventually

LIMIT = 6


class Silence:
    """A registry that takes connections and never says a word."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.socket.getsockname()[1]}"


@pytest.fixture(scope="module")
def silence() -> Iterator[Silence]:
    made = Silence()
    yield made
    made.socket.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--admin-token", "of-the-test", "--image-insecure", "127.0.0.1:*", "--builds-max", "4") as made:
        yield made


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server whose builds have little time."""
    with own_server("--build-seconds", str(LIMIT), "--image-insecure", "127.0.0.1:*") as made:
        yield made


def boxes(server: Server) -> list[str]:
    return [entry.name for entry in (server.data / "boxes").iterdir() if entry.name.startswith(("build-", "unpack-"))]


def cloche(server: Server, *words: str) -> str:
    done = subprocess.run(
        [binary(), *words, "--data", str(server.data)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def stalls(server: Server, silence: Silence) -> dict[str, Order]:
    """One build that waits in a step, one in its base, one for its start command."""
    return {
        "step": order(server.wire, fresh("step"), run("echo begun; sleep 300")),
        "base": order(server.wire, fresh("base"), fromImage=f"{silence.host}/x/y:1"),
        "ready": order(server.wire, fresh("ready"), startCmd="echo begun; sleep 300", readyCmd="false"),
    }


@contextmanager
def cancelled_at_last(server: Server, builds: dict[str, Order]) -> Iterator[None]:
    """Whatever fails, the slots are free for the next test."""
    try:
        yield
    finally:
        for build in builds.values():
            cloche(server, "template", "cancel", build.name)


def begun(builds: dict[str, Order]) -> None:
    eventually(lambda: any(line.endswith("]: begun") for line in builds["step"].log()))
    eventually(lambda: any("FROM" in line for line in builds["base"].log()))
    eventually(lambda: any(line.endswith("]: begun") for line in builds["ready"].log()))


def test_an_operator_cancels_a_teams_builds_wherever_they_are(server: Server, silence: Silence) -> None:
    builds = stalls(server, silence)
    with cancelled_at_last(server, builds):
        begun(builds)
        queued = order(server.wire, fresh("queued"), run("true"))
        waiting = Order(server.wire, fresh("waiting")).request()
        team = cloche(server, "team", "list").splitlines()[1].split()[0]
        path, admin = f"/admin/teams/{team}/builds/cancel", {"X-Admin-Token": "of-the-test"}
        began = time.monotonic()
        got = server.wire.call("POST", path, {}, admin)
        assert (got.status, got.json()["cancelledCount"]) == (200, 5), got.body
        for build in (*builds.values(), queued, waiting):
            assert "cancel" in build.failed()["message"]
        assert time.monotonic() - began < 60
        eventually(lambda: not boxes(server))
    assert server.wire.call("POST", path, {}, admin).json()["cancelledCount"] == 0
    order(server.wire, fresh("after"), run("true")).ready()


def test_a_build_above_its_teams_share_of_slots_says_that_it_waits(server: Server) -> None:
    """The last slot is another team's: with four of them the fourth build of a team is begun when one of three ends."""
    builds = {str(n): order(server.wire, fresh(f"slot{n}"), run(f"echo begun; sleep 30{n}")) for n in range(3)}
    with cancelled_at_last(server, builds):
        for build in builds.values():
            eventually(lambda build=build: any(line.endswith("]: begun") for line in build.log()))
        last = order(server.wire, fresh("last"), run("true"))
        assert last.log() == ["Waiting for a build slot: builds_max is 4, one slot less for one team"]
        assert last.status()["status"] == "building"
        assert cloche(server, "template", "cancel", builds["0"].name) == "cancelled 1\n"
        last.ready()


def test_a_build_that_takes_too_long_is_ended_wherever_it_is(hasty: Server, silence: Silence) -> None:
    builds = stalls(hasty, silence)
    began = time.monotonic()
    for where, step in (("step", "1"), ("base", "base"), ("ready", "finalize")):
        reason = builds[where].failed()
        assert f"{LIMIT} s" in reason["message"], reason
        assert reason["step"] == step
    assert LIMIT - 1 < time.monotonic() - began < LIMIT + 60
    eventually(lambda: not boxes(hasty))


def test_an_interrupt_of_the_command_line_cancels_its_build(server: Server) -> None:
    name = fresh("interrupted")
    words = [binary(), "template", "build", name, "--run", "echo begun; sleep 300", "--data", str(server.data)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout
    said = ""
    while "]: begun" not in said:
        said += child.stdout.readline()
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=20)
    assert child.returncode == 1
    assert "cancelled" in rest
    eventually(lambda: not boxes(server))


def test_a_build_is_cancelled_by_its_name_and_its_log_read_on(server: Server) -> None:
    build = order(server.wire, fresh("named"), run("echo begun; sleep 300"))
    begun_line = [binary(), "template", "log", build.name, "--data", str(server.data)]
    reader = subprocess.Popen(begun_line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert reader.stdout
    said = ""
    while "]: begun" not in said:
        said += reader.stdout.readline()
    assert cloche(server, "template", "cancel", build.name) == "cancelled 1\n"
    rest, _ = reader.communicate(timeout=20)
    assert "Build failed: cancelled: by request" in rest
    assert "cancelled" in build.failed()["message"]
    assert cloche(server, "template", "cancel", build.name) == "cancelled 0\n"
    again = cloche(server, "template", "log", build.name, build.build[:8])
    assert again.count("]: begun") == 1
    assert "no build 'ffffffff-none'" in cloche(server, "template", "log", build.name, "ffffffff-none")


def test_a_growing_log_is_read_on_without_gaps_or_repeats(server: Server) -> None:
    """From two places at once: by number, as the SDKs do, and by time."""
    lines = 250
    script = f"for i in $(seq {lines}); do echo line $i; [ $((i % 25)) -gt 0 ] || sleep 0.1; done"
    build = order(server.wire, fresh("grows"), run(script))
    by_number: list[dict] = []
    by_time: dict[tuple[str, str], dict] = {}
    cursor, over = 0, False
    path = f"/templates/{build.template}/builds/{build.build}/logs"
    while True:
        now = build.status(f"?logsOffset={len(by_number)}&limit=40")
        by_number += now["logEntries"]
        page = server.wire.call("GET", f"{path}?cursor={cursor}&limit=40&direction=forward").json()["logs"]
        by_time.update({(entry["timestamp"], entry["message"]): entry for entry in page})
        if page:
            last = page[-1]["timestamp"]
            cursor = max(cursor, int(time_of(last) * 1000))
        if over and not now["logEntries"]:
            break
        over = now["status"] not in ("waiting", "building")
    wanted = [f"line {n}" for n in range(1, lines + 1)]
    said = [entry["message"].split("]: ", 1)[1] for entry in by_number if "]: line" in entry["message"]]
    assert said == wanted
    assert build.status()["status"] == "ready"
    whole = build.log()
    assert [entry["message"] for entry in by_number] == whole
    back = server.wire.call("GET", f"{path}?direction=backward&limit=5").json()["logs"]
    assert [entry["message"] for entry in back] == whole[-5:]


def time_of(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_log_is_there_after_the_warden_was_killed(server: Server) -> None:
    build = order(server.wire, fresh("kept"), run("echo said before; true")).ready()
    before = build.log()
    (warden,) = server.wardens()
    os.kill(warden, signal.SIGKILL)
    eventually(lambda: server.wardens() not in ([], [warden]))
    eventually(lambda: server.wire.call("GET", "/health").status == 200)
    assert build.log() == before
