# SPDX-License-Identifier: Apache-2.0
"""Paused boxes and the clock across restarts of the daemon."""

from __future__ import annotations

import signal
import time

import pytest

from support.paused import counts_on, start_counting
from support.server import Server
from support.state import leaked, look
from support.waiting import eventually
from support.wire import RawBox

pytestmark = pytest.mark.timeout(180)


def state(box: RawBox, server: Server) -> str | None:
    got = server.wire.call("GET", f"/sandboxes/{box.id}")
    return got.json()["state"] if got.status == 200 else None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_paused_box_is_adopted_as_paused(server: Server, how: signal.Signals) -> None:
    box = server.wire.create(timeout=600, metadata={"kept": "yes"})
    start_counting(box)
    assert server.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    server.signal(how)
    server.start()
    again = RawBox(server.wire, box.made)
    assert state(box, server) == "paused"
    assert again.agent("GET", "/health").status == 502
    got = server.wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})
    assert got.status == 201
    assert got.json()["envdAccessToken"] == box.token
    counts_on(again)


def test_a_box_whose_time_ran_out_meanwhile_sleeps(server: Server) -> None:
    box = server.wire.create(timeout=2, autoPause=True)
    server.signal(signal.SIGTERM)
    time.sleep(2.5)  # its end, two seconds after the start, passes while no server runs
    server.start()
    eventually(lambda: state(box, server) == "paused")
    got = server.wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})
    assert got.status == 201


def test_a_server_that_ends_kills_paused_boxes_too() -> None:
    server = Server()
    data = str(server.data)
    before = look(data)
    server.start()
    try:
        box = server.wire.create(timeout=600)
        assert server.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert server.stop() == 0
        assert leaked(before, data) == set()
    finally:
        server.close()
