# SPDX-License-Identifier: Apache-2.0
"""The memory that boxes share comes from the zygote, never from what a box has mapped."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from support.server import Server
from support.tenants import Tenants, put_program
from support.waiting import eventually
from support.wire import RawBox, Wire

MARK = b"attacker-chosen memory"
INTERPRETER = "code-interpreter-v1"


def warm_box(tenants: Tenants, wire: Wire) -> RawBox:
    """A box whose Python was forked from the zygote: it has memory mapped that it shares."""
    eventually(lambda: "is loaded" in (tenants.server.home / "log").read_text(), 60)
    box = wire.create(INTERPRETER, timeout=300)
    eventually(lambda: shared_memory(box), 20)
    return box


def shared_memory(box: RawBox) -> tuple[str, int] | None:
    """Name and size of the file behind it, as root of the box sees them."""
    _code, maps, _err = box.run("cat /proc/[0-9]*/maps", user="root")
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ +/\S*?([\w-]*heap[\w-]*)$", maps, re.M)
    if not found:
        return None
    name = found[0][3]
    return name, max(int(end, 16) - int(start, 16) + int(offset, 16) for start, end, offset, _name in found)


def python_says(box: RawBox, code: str) -> str:
    return str(box.execute(code))


def pause(wire: Wire, box: RawBox) -> int:
    return wire.call("POST", f"/sandboxes/{box.id}/pause").status


def resume(wire: Wire, box: RawBox) -> int:
    return wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 300}).status


def kept(server: Server) -> list[Path]:
    folder = server.data / "heaps"
    return sorted(folder.iterdir()) if folder.exists() else []


def bytes_on_disk(folder: Path) -> int:
    return sum(entry.lstat().st_blocks * 512 for entry in folder.rglob("*"))


@pytest.fixture(scope="module")
def squatted(tenants: Tenants) -> RawBox:
    """The attacker ends its own Python, maps a file named like the shared memory, and is the first to be paused."""
    box = warm_box(tenants, tenants.attacker)
    found = shared_memory(box)
    assert found
    program = put_program(box, "heap_squat")
    ended = "for p in /proc/[0-9]*; do grep -q '/.*heap' $p/maps 2>/dev/null && kill -9 ${p#/proc/}; done; sleep 0.2"
    for number, name in enumerate({found[0], "cloche-heap-0123456789abcdef"}):
        clear = f"({ended}); " if number == 0 else ""
        code, out, err = box.run(
            f"{clear}mkdir -p /tmp/{number}; {program} one /tmp/{number}/{name} {found[1]}", user="root"
        )
        assert code == 0, err
        assert "mapped" in out, err
    assert pause(tenants.attacker, box) == 204
    return box


def test_what_a_box_has_mapped_is_not_kept_for_others(tenants: Tenants, squatted: RawBox) -> None:
    for path in kept(tenants.server):
        assert MARK not in path.read_bytes(), f"{path.name} holds what the attacker chose"


def test_a_neighbour_resumes_with_its_own_memory(tenants: Tenants, squatted: RawBox) -> None:
    box = warm_box(tenants, tenants.victim)
    try:
        assert "4951" in python_says(box, "import pandas; kept = pandas.Series(range(100)); int(kept.sum()) + 1")
        assert pause(tenants.victim, box) == 204
        assert resume(tenants.victim, box) == 201
        assert "4952" in python_says(box, "int(kept.sum()) + 2")
    finally:
        box.kill()


def test_the_attacker_gets_its_own_memory_back(tenants: Tenants, squatted: RawBox) -> None:
    assert resume(tenants.attacker, squatted) == 201
    _code, out, err = squatted.run("cat /proc/[0-9]*/maps | grep -c cloche-heap-0123456789abcdef", user="root")
    assert out.strip() == "1", err
    assert pause(tenants.attacker, squatted) == 204
    assert resume(tenants.attacker, squatted) == 201


def test_hard_links_write_nothing_beside_the_image(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=300)
    try:
        before = bytes_on_disk(tenants.server.data / "heaps")
        code, out, err = tenants.attack(box, "heap_squat", "many", "/tmp", "20", "16")
        assert code == 0, err
        assert "mapped" in out, err
        assert pause(tenants.attacker, box) == 204
        written = bytes_on_disk(tenants.server.data / "heaps") - before
        assert written < 1 << 20, f"{written >> 20} MiB written for 16 MiB of the box's own"
    finally:
        box.kill()


def test_an_image_is_bounded_though_forks_share_memory(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=300)
    try:
        code, out, err = tenants.attack(box, "checkpoint_bloat", "100", "60")
        assert code == 0, err
        assert "forked" in out, err
        answer = tenants.attacker.call("POST", f"/sandboxes/{box.id}/pause")
        assert answer.status == 422, (answer.status, answer.body)
        assert b"MiB" in answer.body, (answer.status, answer.body)
        assert box.run("echo alive")[1] == "alive\n"
    finally:
        box.kill()


def test_a_box_born_before_a_restart_shares_memory_still(server: Server) -> None:
    alone = Tenants(server, server.wire, server.wire)
    box = warm_box(alone, server.wire)
    assert "41" in python_says(box, "import numpy; kept = numpy.arange(42); int(kept[-1])")
    for warden in server.wardens():
        os.kill(warden, signal.SIGKILL)
    eventually(lambda: server.wire.call("GET", "/health").status in (200, 204), 30)
    eventually(lambda: pause(server.wire, box) == 204, 60)
    images = server.data / "checkpoints"
    assert bytes_on_disk(images) < 40 << 20
    assert resume(server.wire, box) == 201
    assert "861" in python_says(box, "int(kept.sum())")
    assert pause(server.wire, box) == 204
    assert resume(server.wire, box) == 201
    assert "42" in python_says(box, "len(kept)")
    box.kill()
