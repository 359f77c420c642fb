# SPDX-License-Identifier: Apache-2.0
"""Pausing a box whose agent is silent, which is found out within seconds.

Who insists on a healthy one is refused and the box goes on as it is; else it is paused and marked, and starts again
from its files alone.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import e2b
import pytest

from support.paused import connect, counts_on, detail, pause, start_counting, state
from support.waiting import eventually
from support.wire import RawBox, Wire

SECONDS = 5  # the server waits for 2


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120)
    yield made
    made.kill()


def command_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def host_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def agent_of(box: RawBox) -> int:
    """The agent's pid on the host, found as the ancestor of a process with a mark."""
    mark = uuid.uuid4().hex
    box.run(f"setsid bash -c 'while :; do sleep 1; done' {mark} >/dev/null 2>&1 </dev/null &")
    pid = eventually(lambda: next((pid for pid in host_pids() if mark.encode() in command_of(pid)), 0))
    while command_of(pid)[0] != b"/usr/lib/cloche/agent":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert pid > 1
    return pid


@contextmanager
def silent_agent(box: RawBox) -> Iterator[None]:
    pid = agent_of(box)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_healthy_box_is_paused(box: RawBox) -> None:
    start_counting(box)
    for strict, more in ((True, {}), (False, {}), (True, {"memory": True})):
        assert pause(box, requireHealthyGuest=strict, **more).status == 204
        assert pause(box, requireHealthyGuest=True).status == 409
        assert connect(box).status == 201
        counts_on(box)
    assert pause(box, requireHealthyGuest=True, memory=False).status == 204
    assert detail(box)["pauseMode"] == "filesystem"


def test_a_silent_agent_is_found_out(box: RawBox) -> None:
    start_counting(box)
    with silent_agent(box):
        for body in ({}, {"memory": False}):
            began = time.monotonic()
            got = pause(box, requireHealthyGuest=True, **body)
            assert time.monotonic() - began < SECONDS
            assert (got.status, got.json()["code"]) == (503, 503)
            assert "agent did not answer within 2 s" in got.json()["message"]
            assert state(box) == "running"
    counts_on(box)
    assert pause(box, requireHealthyGuest=True).status == 204
    assert connect(box).status == 201
    counts_on(box)


def test_an_agent_that_answers_late_but_in_time(box: RawBox) -> None:
    with ThreadPoolExecutor() as pool:
        with silent_agent(box):
            asked = pool.submit(pause, box, requireHealthyGuest=True)
            time.sleep(0.5)  # a quarter of what the server waits
            assert not asked.done()
        assert asked.result().status == 204


def test_a_kill_does_not_wait_for_it(box: RawBox) -> None:
    pid = agent_of(box)
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(pause, box, requireHealthyGuest=True)
        time.sleep(0.5)  # a quarter of what the server waits
        assert box.kill() == 204
        assert asked.result().status in (404, 503)
    assert state(box) is None


def test_other_types_are_refused(box: RawBox) -> None:
    for value in ("x", "true", 1, 0, [], {}):
        got = pause(box, requireHealthyGuest=value)
        assert (got.status, got.json()["code"]) == (400, 400), value
        assert "'requireHealthyGuest'" in got.json()["message"]
    assert state(box) == "running"


def test_the_sdk_is_strict(box: RawBox) -> None:
    sdk = e2b.Sandbox.connect(box.id, timeout=120, retries=0)
    with silent_agent(box), pytest.raises(Exception) as caught:
        sdk.pause(strict=True)
    assert "agent did not answer" in str(caught.value)
    assert state(box) == "running"
    assert sdk.pause(strict=True) is True
    assert state(box) == "paused"


def stop_agent(box: RawBox) -> None:
    os.kill(agent_of(box), signal.SIGSTOP)


def listed(wire: Wire, box: RawBox) -> dict:
    return next(row for row in wire.call("GET", "/v2/sandboxes?state=paused").json() if row["sandboxID"] == box.id)


def test_a_box_with_a_silent_agent_is_paused_and_marked(wire: Wire, box: RawBox) -> None:
    box.run("echo kept >/home/user/kept; sync")
    assert "envdUnresponsiveAtPause" not in detail(box)
    stop_agent(box)
    began = time.monotonic()
    assert pause(box).status == 204
    assert time.monotonic() - began < 15  # the server waits for 5, and the machine may be busy
    assert detail(box)["envdUnresponsiveAtPause"] is True
    assert listed(wire, box)["envdUnresponsiveAtPause"] is True
    assert detail(box)["pauseMode"] == "full"
    for body in ({}, {"timeout": 60}, {"memory": True}):
        got = connect(box, **body)
        assert (got.status, got.json()["code"]) == (409, 409), got.body
        assert got.json()["error_code"] == "sandbox_snapshot_guest_agent_unresponsive"
        assert state(box) == "paused"
    got = wire.call("POST", f"/sandboxes/{box.id}/resume", {"timeout": 60})
    assert (got.status, got.json()["error_code"]) == (409, "sandbox_snapshot_guest_agent_unresponsive")
    assert connect(box, memory=False).status == 201
    assert "envdUnresponsiveAtPause" not in detail(box)
    assert box.run("cat /home/user/kept")[1] == "kept\n"
    assert pause(box).status == 204
    assert "envdUnresponsiveAtPause" not in detail(box)
    assert connect(box).status == 201


def test_requests_that_wait_in_a_silent_agent_do_not_keep_a_box_from_its_pause(box: RawBox) -> None:
    """One connection that the agent has accepted, and some in its queue."""
    with ThreadPoolExecutor() as pool, box.wire.open() as idle:
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        stop_agent(box)
        asked = [pool.submit(box.agent, "GET", "/health") for _ in range(3)]
        assert pause(box).status == 204
        assert detail(box)["envdUnresponsiveAtPause"] is True
        for request in asked:
            assert request.result().status == 502
    assert connect(box, memory=False).status == 201
    assert box.run("echo back")[1] == "back\n"


def test_at_its_timeout_a_silent_box_is_paused_and_marked(wire: Wire) -> None:
    box = wire.create(timeout=3, autoPause=True)
    try:
        stop_agent(box)
        eventually(lambda: state(box) == "paused" and "pauseMode" in detail(box))
        assert detail(box)["envdUnresponsiveAtPause"] is True
        assert connect(box, memory=False, timeout=60).status == 201
    finally:
        box.kill()


def test_the_sdk_tells_of_the_silent_agent_and_reboots(box: RawBox) -> None:
    sdk = e2b.Sandbox.connect(box.id, timeout=120)
    stop_agent(box)
    assert sdk.pause() is True
    assert sdk.get_info().envd_unresponsive_at_pause is True
    with pytest.raises(e2b.GuestUnresponsiveException):
        e2b.Sandbox.connect(box.id, timeout=120)
    again = e2b.Sandbox.connect(box.id, timeout=120, on_resume="reboot")
    assert again.commands.run("echo rebooted").stdout == "rebooted\n"


def test_stopped_processes_are_paused_and_stay_stopped(box: RawBox) -> None:
    """As ^Z leaves them."""
    box.run("(setsid sleep 1000 >/dev/null 2>&1 &); sleep 0.1; kill -STOP $(pidof sleep)")
    shown = "cut -d' ' -f3 /proc/$(pidof sleep)/stat"
    for _ in range(2):
        assert box.run(shown)[1].strip() == "T"
        began = time.monotonic()
        assert pause(box).status == 204
        assert time.monotonic() - began < 20  # criu's own limit is 45
        assert connect(box).status == 201
    assert box.run(shown)[1].strip() == "T"
    copies = box.wire.call("POST", f"/sandboxes/{box.id}/fork", {"timeout": 60}).json()
    assert box.run(shown)[1].strip() == "T"
    for made in copies:
        copy = RawBox(box.wire, made.get("sandbox", made))
        assert copy.run(shown)[1].strip() == "T"
        copy.kill()
    box.run("kill -CONT $(pidof sleep)")
    assert box.run(shown)[1].strip() == "S"
