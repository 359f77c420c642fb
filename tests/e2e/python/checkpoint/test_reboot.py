# SPDX-License-Identifier: Apache-2.0
"""Paused boxes outlive the daemon, its crash, and the loss of every process, mount and group."""

from __future__ import annotations

import signal
import time

import pytest

from support.paused import (
    connect,
    count_of,
    counts_on,
    fork,
    pause,
    snapshot,
    start_counting,
    state,
    text_of,
)
from support.reboot import power_off
from support.server import Server
from support.state import below
from support.waiting import eventually
from support.wire import RawBox

pytestmark = pytest.mark.timeout(180)


def moved(box: RawBox, server: Server) -> RawBox:
    return RawBox(server.wire, box.made)


def cell_with_state(server: Server, **options: object) -> RawBox:
    box = server.wire.create("code-interpreter-v1", timeout=600, metadata={"kept": "yes"}, **options)
    text_of(box.execute("x = 41; import threading"))
    box.run("echo kept > ~/kept")
    start_counting(box)
    return box


def check(box: RawBox, at_least: int) -> None:
    assert text_of(box.execute("x + 1")) == "42"
    assert box.run("cat ~/kept")[1] == "kept\n"
    assert counts_on(box) > at_least
    asked = time.time()
    assert asked - 0.1 <= float(box.run("date +%s.%N")[1]) <= time.time() + 0.1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_new_daemon_resumes_a_paused_box(server: Server, how: signal.Signals) -> None:
    box = cell_with_state(server)
    seen = count_of(box)
    assert pause(box).status == 204
    server.signal(how)
    server.start()
    box = moved(box, server)
    assert state(box) == "paused"
    got = connect(box)
    assert got.status == 201, got.body
    assert got.json()["envdAccessToken"] == box.token
    check(box, seen)


def test_a_paused_box_outlives_a_reboot(server: Server) -> None:
    """And sleeps, wakes, forks and is kept as a snapshot afterwards."""
    box = cell_with_state(server)
    seen = count_of(box)
    assert pause(box).status == 204
    power_off(server)
    server.start()
    box = moved(box, server)
    assert state(box) == "paused"
    got = connect(box)
    assert got.status == 201, got.body
    check(box, seen)
    assert pause(box).status == 204
    assert connect(box).status == 201
    check(box, seen)
    got = fork(box, timeout=60)
    assert got.status == 201, got.body
    check(RawBox(server.wire, got.json()[0]["sandbox"]), seen)


def test_traffic_resumes_a_paused_box_after_a_reboot(server: Server) -> None:
    box = server.wire.create(timeout=600, autoPause=True, autoResume={"enabled": True})
    start_counting(box)
    seen = count_of(box)
    assert pause(box).status == 204
    power_off(server)
    server.start()
    box = moved(box, server)
    assert box.agent("GET", "/health").status == 204
    assert state(box) == "running"
    assert counts_on(box) > seen


def test_a_snapshot_outlives_a_reboot(server: Server) -> None:
    box = cell_with_state(server)
    seen = count_of(box)
    made = snapshot(box, name="lasting")
    assert made.status == 201, made.body
    cold = server.wire.create(timeout=600)
    cold.run("echo kept > ~/kept")
    assert pause(cold, memory=False).status == 204
    power_off(server)
    server.start()
    child = server.wire.create(made.json()["snapshotID"], timeout=60)
    check(child, seen)
    cold = moved(cold, server)
    assert connect(cold).status == 201
    assert cold.run("cat ~/kept")[1] == "kept\n"


def test_a_box_that_ran_at_the_power_cut_is_gone_and_said_so(server: Server) -> None:
    box = server.wire.create(timeout=600)
    power_off(server)
    server.start()
    box = moved(box, server)
    assert state(box) is None
    assert connect(box).status == 404
    again = server.wire.create(timeout=60)
    assert again.run("echo fine")[1] == "fine\n"


def test_a_paused_box_killed_by_a_new_daemon_leaves_nothing(server: Server) -> None:
    box = cell_with_state(server)
    assert pause(box).status == 204
    power_off(server)
    server.start()
    assert server.wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
    eventually(lambda: not below(server.data, f"*{box.id}*"), state=lambda: below(server.data, f"*{box.id}*"))


def test_a_damaged_image_is_refused_with_its_name(server: Server) -> None:
    box = cell_with_state(server)
    assert pause(box).status == 204
    pages = sorted(below(server.data, "pages-*.img*"), key=lambda file: file.stat().st_size)
    assert pages, "no checkpoint of a paused box in the data directory"
    with open(pages[-1], "r+b") as file:
        file.seek(pages[-1].stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0xFF]))
    got = connect(box)
    assert got.status >= 400
    assert pages[-1].name in got.json()["message"] or "damaged" in got.json()["message"].lower(), got.body
    assert state(box) == "paused", "nothing more is lost than was damaged"
    got = connect(box, memory=False)
    assert got.status == 201, got.body
    assert box.run("cat ~/kept")[1] == "kept\n"
