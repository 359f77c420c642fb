# SPDX-License-Identifier: Apache-2.0
"""Pausing only a box whose agent answers: a silent one is found out within seconds and goes on as it is."""

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
