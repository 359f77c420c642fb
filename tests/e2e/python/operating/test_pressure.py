# SPDX-License-Identifier: Apache-2.0
"""A machine that runs out of disk or memory: what is refused first, what goes first, and how that is told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from support.paused import connect, pause, start_tracing, state
from support.server import Server, own_server
from support.state import leaked, look
from support.tenants import two_teams
from support.waiting import eventually
from support.wire import RawBox, Wire

pytestmark = pytest.mark.timeout(300)
DISK_MB = 3000


@pytest.fixture
def small() -> Iterator[Server]:
    """The whole data directory is on a small filesystem of its own."""
    server = Server()
    before = look(str(server.data))
    file = server.home / "small.ext4"
    server.data.mkdir(parents=True)
    with open(file, "wb") as disk:
        disk.truncate(DISK_MB << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(file)], check=True)
    subprocess.run(["mount", "-o", "loop", str(file), str(server.data)], check=True)
    try:
        server.start("--pool", "0", "--gates", "1", "--disks-ready", "0", "--zygotes", "0")
        yield server
    finally:
        if server.process:
            server.stop()
        subprocess.run(["umount", "--lazy", str(server.data)], check=True)
        server.close()
    assert leaked(before, str(server.data)) == set()


def fill(server: Server, leave_mb: int) -> None:
    """The disk has so many MiB left."""
    ballast = server.data / "ballast"
    ballast.unlink(missing_ok=True)
    free = os.statvfs(server.data)
    size = free.f_bavail * free.f_frsize - (leave_mb << 20)
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def build(wire: Wire, name: str) -> int:
    made = wire.call("POST", "/v3/templates", {"name": name, "cpuCount": 1, "memoryMB": 512})
    return made.status


def test_a_full_disk_refuses_creates_then_builds_then_pauses(small: Server) -> None:
    wire = small.wire
    box = wire.create(timeout=600)
    assert box.run("echo kept > /home/user/file; sync")[0] == 0

    # of 3000 MiB: a tenth for creates, 3/40 for builds, a twentieth for pauses
    fill(small, 280)
    refused = wire.call("POST", "/sandboxes", {"templateID": "base"})
    assert refused.status == 507, refused.text
    assert "disk_creates_mb" in refused.json()["message"]
    assert build(wire, "while-creates-are-refused") == 202
    fill(small, 200)
    made = wire.call("POST", "/v3/templates", {"name": "too-late", "cpuCount": 1, "memoryMB": 512})
    assert made.status == 507, made.text
    assert "disk_builds_mb" in made.json()["message"]
    fill(small, 290)
    assert build(wire, "again") == 202
    paused = pause(box, memory=False)
    assert paused.status == 204, paused.text
    fill(small, 100)
    assert state(box) == "paused"
    (small.data / "ballast").unlink()
    assert connect(box).status == 201
    assert box.run("cat /home/user/file")[1] == "kept\n"
    wire.create(timeout=60).kill()
    box.kill()


def tier(box: RawBox) -> str | None:
    return box.wire.call("GET", f"/sandboxes/{box.id}").headers.get("X-Cloche-Pause-Tier")


def test_boxes_that_write_while_the_disk_ends_are_frozen_and_others_go_on(small: Server) -> None:
    """Of 3000 MiB a fortieth: below 75 MiB nobody writes on, and what was written is whole."""
    wire = small.wire
    writer, quiet = wire.create(timeout=600), wire.create(timeout=600)
    assert quiet.run("echo kept > /home/user/file; sync")[0] == 0
    fill(small, 290)
    # in bits, so that what the kernel has yet to write is less than the mark
    loop = "i=0; while dd if=/dev/urandom of=/home/user/big-$i bs=1M count=4 conv=fsync; do i=$((i+1)); sleep 0.1; done"
    assert writer.run(f"nohup sh -c '{loop}' >/dev/null 2>&1 &")[0] == 0
    eventually(lambda: tier(writer) == "frozen", 120, state=small.log)
    assert "less than disk_stop_mb" in small.log()
    left = os.statvfs(small.data)
    assert left.f_bavail * left.f_frsize > 10 << 20
    assert quiet.run("cat /home/user/file")[1] == "kept\n"
    refused = connect(writer)
    assert refused.status == 507, refused.text
    assert "disk_stop_mb" in refused.json()["message"]
    (small.data / "ballast").unlink()
    assert connect(writer).status == 201
    assert writer.run("cat /home/user/big-0 | wc -c")[1].strip() == str(4 << 20)
    for box in (writer, quiet):
        box.kill()


@pytest.fixture
def configured() -> Iterator[Server]:
    server = Server()
    (server.home / "cloche.conf.d").mkdir()
    (server.home / "cloche.conf").write_text("gates = 1\npool = 0\n")
    with own_server("--config", str(server.home / "cloche.conf"), made=server) as running:
        yield running


def set_low(server: Server, text: str) -> None:
    (server.home / "cloche.conf.d/90-memory.conf").write_text(text)
    assert server.process
    server.process.send_signal(signal.SIGHUP)


def eats(wire: Wire, mb: int, **options: object) -> RawBox:
    box = wire.create("code-interpreter-v1", timeout=600, **options)
    box.execute(f"import os; eaten = os.urandom({mb} << 20)")
    return box


def used(server: Server, box: RawBox) -> int:
    got = box.wire.call("GET", f"/sandboxes/{box.id}/metrics")
    return max((m["memUsed"] for m in got.json()), default=0) if got.status == 200 else 0


def test_memory_pressure_pauses_then_ends_the_largest_of_the_largest_team(configured: Server) -> None:
    other = two_teams(configured).attacker
    mine, kept, big = configured.wire.create(timeout=600), eats(other, 30, autoPause=True), eats(other, 200)
    eventually(lambda: used(configured, big) > 150 << 20, 60, state=configured.log)
    everything = "memory_kill_mb = 100000000\nmemory_low_mb = 100000000\n"  # more than there is: always short
    set_low(configured, everything)
    eventually(lambda: state(kept) == "paused", 60, state=configured.log)
    refused = configured.wire.call("POST", "/sandboxes", {"templateID": "base"})
    assert refused.status == 503, refused.text
    assert "memory_low_mb" in refused.json()["message"]
    assert not re.search("[0-9]", refused.json()["message"])  # how much is left is no team's business
    assert connect(kept).status == 503
    eventually(lambda: state(big) is None, 60, every=0.05, state=configured.log)
    set_low(configured, "memory_kill_mb = 0\nmemory_low_mb = 0\n")
    cause = other.call("GET", f"/sandboxes/{big.id}").json()["message"]
    assert "out of memory: the machine had" in cause
    assert "used the most" in cause
    assert state(mine) == "running"
    assert connect(kept).status == 201
    for box in (mine, kept):
        box.kill()


def frozen(wire: Wire, mb: int) -> RawBox:
    """Its time is up, and no image can hold it: it stays in memory."""
    box = eats(wire, mb, autoPause=True)
    start_tracing(box)
    assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
    eventually(lambda: wire.call("GET", f"/sandboxes/{box.id}").headers["X-Cloche-Pause-Tier"] == "frozen", 30)
    return box


def test_memory_that_no_image_can_hold_costs_its_own_team(configured: Server) -> None:
    """Frozen memory counts, a pause that fails frees by ending its box, and the neighbour keeps what it has."""
    attacker = two_teams(configured).attacker
    mine = eats(configured.wire, 60, autoPause=True)
    hidden = frozen(attacker, 200)
    traced = eats(attacker, 150, autoPause=True)
    start_tracing(traced)
    set_low(configured, "memory_kill_mb = 1\nmemory_low_mb = 100000000\n")  # low, but not out of it
    eventually(lambda: "less than memory_low_mb" in configured.log(), 30)
    eventually(lambda: attacker.call("POST", "/sandboxes", {"templateID": "base"}).status == 503, 30)
    configured.wire.create(timeout=60).kill()  # uses less than its share
    set_low(configured, "memory_kill_mb = 100000000\nmemory_low_mb = 0\n")
    eventually(lambda: state(traced) is None, 60, every=0.05, state=configured.log)
    eventually(lambda: state(hidden) is None, 60, every=0.05, state=configured.log)
    set_low(configured, "memory_kill_mb = 0\nmemory_low_mb = 0\n")
    assert state(mine) == "running"
    cause = attacker.call("GET", f"/sandboxes/{traced.id}").json()["message"]
    assert "out of memory" in cause
    assert "could not be paused" in cause
    assert "out of memory" in attacker.call("GET", f"/sandboxes/{hidden.id}").json()["message"]
    mine.kill()
