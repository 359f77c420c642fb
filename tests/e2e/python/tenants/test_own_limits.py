# SPDX-License-Identifier: Apache-2.0
"""What a box sees of its size is its team's own business: neither figures nor files of another team's box show in it,
and they stay true when the other box ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from support.tenants import Tenants
from support.waiting import eventually
from support.wire import RawBox, Wire

VIEWS = "/proc/meminfo /proc/stat /proc/loadavg /proc/cpuinfo /proc/swaps /sys/devices/system/cpu/online"
EAT = "python3 -c \"import time; a = bytearray(300 << 20); print('ate', flush=True); time.sleep(120)\""
TICKS = "head -1 /proc/stat | awk '{print $2 + $4}'"  # hundredths of a second
LOAD = "cut -d' ' -f1 /proc/loadavg"
LIMITS = (
    "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max 2>/dev/null ||"
    " cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max"
)


@dataclass
class Pair:
    mine: RawBox
    theirs: RawBox


def box_of(wire: Wire) -> RawBox:
    return wire.create("base", timeout=300)


@pytest.fixture
def pair(tenants: Tenants) -> Iterator[Pair]:
    made = Pair(box_of(tenants.victim), box_of(tenants.attacker))
    yield made
    made.mine.kill()
    made.theirs.kill()


def told(box: RawBox, command: str) -> str:
    code, out, errors = box.run(command)
    assert code == 0, (command, out, errors)
    return out.strip()


def used_mb(box: RawBox) -> int:
    return int(told(box, "free -m | awk '/Mem:/ {print $3}'"))


def eat(box: RawBox) -> None:
    """300 MB are taken, and a processor is busy from now on."""
    told(box, f"({EAT} > /tmp/eaten 2>&1 &); (timeout 120 sh -c 'while :; do :; done' > /dev/null 2>&1 &)")
    told(box, "until [ -s /tmp/eaten ]; do sleep 0.05; done")


def moves(box: RawBox) -> bool:
    """The box's own figures follow what it does."""
    before = used_mb(box)
    eat(box)
    return used_mb(box) >= before + 250


def test_a_box_shows_nothing_of_another_teams(pair: Pair) -> None:
    before, ticks = used_mb(pair.theirs), int(told(pair.theirs, TICKS))
    eat(pair.mine)
    assert used_mb(pair.mine) >= 280
    eventually(lambda: float(told(pair.mine, LOAD)) > 0.03, 20)
    assert used_mb(pair.theirs) < before + 50
    assert float(told(pair.theirs, LOAD)) < float(told(pair.mine, LOAD))
    assert int(told(pair.theirs, TICKS)) - ticks < int(told(pair.mine, TICKS))
    # No file of one is a file of the other, and root of a box has no way to either from the other's.
    devices = [told(box, f"stat -c %d {VIEWS} | sort -u") for box in (pair.mine, pair.theirs)]
    assert devices[0] != devices[1]
    assert all(device.isdigit() for device in devices), "one device each"
    for box in (pair.mine, pair.theirs):
        devices_of_mounts = told(box, "grep cloche-view /proc/self/mountinfo | cut -d' ' -f3").split()
        assert (len(devices_of_mounts), len(set(devices_of_mounts))) == (8, 1), devices_of_mounts


def test_the_figures_outlive_a_neighbour_and_are_not_inherited(tenants: Tenants, pair: Pair) -> None:
    eat(pair.theirs)
    mine = used_mb(pair.mine)
    pair.theirs.kill()
    assert abs(used_mb(pair.mine) - mine) < 50
    assert moves(pair.mine)
    eventually(lambda: float(told(pair.mine, LOAD)) > 0.03, 20)
    after = box_of(tenants.attacker)  # begins at nothing, whatever ran before it
    try:
        assert used_mb(after) < 150
        assert int(told(after, TICKS)) < int(told(pair.mine, TICKS))
        assert moves(after)
        pair.mine.kill()
        assert used_mb(after) >= 250
        assert told(after, "free -m | awk '/Mem:/ {print $2}'") == "1024"
    finally:
        after.kill()


def test_limits_of_memory_and_processes_are_told(tenants: Tenants, pair: Pair) -> None:
    made = tenants.victim.call("GET", f"/sandboxes/{pair.mine.id}").json()
    memory, processes = told(pair.mine, LIMITS).split()
    assert (int(memory) >> 20, int(processes)) == (made["memoryMB"], 4096)
    program = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)), os.sysconf('SC_NPROCESSORS_ONLN'))"
    assert told(pair.mine, f'python3 -c "{program}"') == " ".join([str(made["cpuCount"])] * 3)
    assert told(pair.mine, "nproc; nproc --all").split() == [str(made["cpuCount"])] * 2
