# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up while a box is written to it: the caller is told, and the box goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from support.paused import (
    connect,
    counts_on,
    fork,
    pause,
    snapshot,
    start_counting,
    state,
    text_of,
)
from support.server import Server
from support.state import leaked, look
from support.wire import RawBox

pytestmark = pytest.mark.timeout(180)

ROOM_MB = 400
EATEN_MB = 400


@pytest.fixture
def cramped() -> Iterator[Server]:
    """Its checkpoints are on a small filesystem of their own: a file on a loop device."""
    server = Server()
    before = look(str(server.data))
    place, file = server.data / "checkpoints", server.home / "small.ext4"
    place.mkdir(parents=True)
    with open(file, "wb") as disk:
        disk.truncate(ROOM_MB << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(file)], check=True)
    subprocess.run(["mount", "-o", "loop", str(file), str(place)], check=True)
    try:
        server.start()
        yield server
    finally:
        if server.process:
            server.stop()
        subprocess.run(["umount", str(place)], check=True)
        server.close()
    assert leaked(before, str(server.data)) == set()


def hungry(server: Server, **options: object) -> RawBox:
    box = server.wire.create("code-interpreter-v1", timeout=600, **options)
    text_of(box.execute(f"import os; eaten = os.urandom({EATEN_MB} << 20); x = 41"))
    start_counting(box)
    return box


def test_whoever_asks_is_told_and_the_box_goes_on(cramped: Server) -> None:
    box = hungry(cramped)
    for ask in (pause, snapshot, fork):
        got = ask(box)
        assert got.status == 507, (ask.__name__, got.status, got.text)
        assert "full" in got.json()["message"], got.text
        assert state(box) == "running"
        counts_on(box)
        assert text_of(box.execute("x + 1")) == "42"
    assert {entry.name for entry in (cramped.data / "checkpoints").iterdir()} <= {"lost+found"}
    text_of(box.execute("del eaten; None"))
    assert pause(box).status == 204, "with room enough it sleeps"
    assert connect(box).status == 201
    assert text_of(box.execute("x + 1")) == "42"
    box.kill()


def test_one_whose_time_is_up_stays_in_memory(cramped: Server) -> None:
    box = hungry(cramped, autoPause=True)
    assert cramped.wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
    got = connect(box, timeout=300)
    assert got.status in (200, 201), got.text
    counts_on(box)
    assert text_of(box.execute("x + len(eaten)")) == str(41 + (EATEN_MB << 20))
    assert "stays in memory" in (cramped.home / "log").read_text()
    box.kill()
