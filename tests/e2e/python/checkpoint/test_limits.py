# SPDX-License-Identifier: Apache-2.0
"""A box sees its own limits: memory, processors, load and age, before and after a pause, in copies, and whatever
happens to the daemon."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.paused import fork, pause_and_resume
from support.recipes import fresh
from support.server import Server
from support.waiting import eventually
from support.wire import RawBox, Wire

MEMORY_MB = 1024
EAT = "python3 -c \"import time; a = bytearray({mb} << 20); print('ate', flush=True); time.sleep({seconds})\""

# Reads all the time and leaves the longest time that one read took, in milliseconds.
READER = (
    "import time\n"
    "worst = 0.0\n"
    "while True:\n"
    "    began = time.monotonic()\n"
    "    for name in ('meminfo', 'stat', 'loadavg'):\n"
    "        assert open('/proc/' + name).read(100)\n"
    "    worst = max(worst, time.monotonic() - began)\n"
    "    open('/tmp/worst', 'w').write(f'{worst * 1000:.0f}')\n"
    "    time.sleep(0.01)\n"
)

# One line each: what programs that size themselves see.
SEEN = {
    "free -m | awk '/Mem:/ {print $2}'": str(MEMORY_MB),
    "free -m | awk '/Swap:/ {print $2}'": "0",
    "nproc": "1",
    "python3 -c 'import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))'": "1 1",
    "grep -c ^processor /proc/cpuinfo": "1",
    "grep -c '^cpu[0-9]' /proc/stat": "1",
    "node -p 'require(\"os\").totalmem() / 1048576'": str(MEMORY_MB),
    "node -p 'require(\"os\").cpus().length'": "1",
    "java -XX:+PrintFlagsFinal -version 2>/dev/null | awk '$2 == \"MaxHeapSize\" {print $4 / 1048576}'": "256",
    "top -bn1 | awk '/MiB Mem/ {print $4}'": f"{MEMORY_MB}.0",
    "wc -l < /proc/swaps": "1",
}


@pytest.fixture(scope="module")
def small() -> str:
    """A template of one processor and little memory, with all languages."""
    name = fresh("small")
    template = e2b.Template().from_template("code-interpreter-v1").run_cmd("true")
    e2b.Template.build(template, name, cpu_count=1, memory_mb=MEMORY_MB)
    return name


@pytest.fixture
def box(wire: Wire, small: str) -> Iterator[RawBox]:
    made = wire.create(small, timeout=120)
    yield made
    made.kill()


def told(box: RawBox, command: str) -> str:
    code, out, errors = box.run(command)
    assert code == 0, (command, out, errors)
    return out.strip()


def used_mb(box: RawBox) -> int:
    return int(told(box, "free -m | awk '/Mem:/ {print $3}'"))


def eat(box: RawBox, mb: int, seconds: int) -> None:
    """Something in the box has taken so much memory, for a while."""
    told(box, f"rm -f /tmp/eaten; ({EAT.format(mb=mb, seconds=seconds)} > /tmp/eaten 2>&1 &)")
    told(box, "until [ -s /tmp/eaten ]; do sleep 0.05; done")


def uptime(box: RawBox) -> float:
    return float(told(box, "cut -d' ' -f1 /proc/uptime"))


def expect_own_limits(box: RawBox) -> None:
    assert {command: told(box, command) for command in SEEN} == SEEN


def test_programs_see_the_boxs_size_also_after_a_pause_and_in_a_fork(wire: Wire, box: RawBox) -> None:
    expect_own_limits(box)
    pause_and_resume(box)
    expect_own_limits(box)
    got = fork(box, timeout=60, count=1)
    assert got.status == 201, got.body
    copy = RawBox(wire, got.json()[0]["sandbox"])
    try:
        expect_own_limits(copy)
    finally:
        copy.kill()


def test_free_moves_with_the_boxs_memory_and_not_with_a_neighbours(wire: Wire, small: str, box: RawBox) -> None:
    other = wire.create(small, timeout=120)
    try:
        before, theirs = used_mb(box), used_mb(other)
        eat(box, 300, 60)
        assert used_mb(box) >= before + 280
        assert used_mb(other) < theirs + 100
        pause_and_resume(box)
        assert used_mb(box) >= before + 280
    finally:
        other.kill()


def test_processor_time_and_load_are_the_boxs(box: RawBox) -> None:
    busy = "head -1 /proc/stat | awk '{print $2 + $4, $5}'"
    used, idle = map(int, told(box, busy).split())
    told(box, "timeout 1 sh -c 'while :; do :; done'; true")
    used_then, _ = map(int, told(box, busy).split())
    assert used_then >= used + 30  # hundredths of a second; the machine is shared
    told(box, "sleep 1")
    used_last, idle_last = map(int, told(box, busy).split())
    assert used_last < used_then + 50
    assert idle_last >= idle + 50
    told(box, "(timeout 20 sh -c 'while :; do :; done' > /dev/null 2>&1 &)")
    eventually(lambda: float(told(box, "cut -d' ' -f1 /proc/loadavg")) > 0.03, 15)


def test_uptime_is_the_boxs_age_and_goes_on_after_a_pause(box: RawBox) -> None:
    first = uptime(box)
    assert first < 120 < float(Path("/proc/uptime").read_text().split()[0])
    told(box, "(sleep 60 > /dev/null 2>&1 &)")
    assert told(box, "ps -o etimes= -p 1").isdigit()
    assert int(told(box, "ps -o etimes= -p 1")) <= first + 5
    pause_and_resume(box)
    assert first <= uptime(box) < first + 60
    assert abs(int(told(box, "awk '/btime/ {print $2}' /proc/stat")) + uptime(box) - time.time()) < 60


def test_a_program_with_these_files_open_survives_a_pause(box: RawBox) -> None:
    told(box, "(top -b -d 0.3 > /tmp/top 2>&1 &) ; until grep -q 'MiB Mem' /tmp/top; do sleep 0.05; done")
    pause_and_resume(box)
    told(box, ": > /tmp/top; until grep -q 'MiB Mem' /tmp/top; do sleep 0.05; done; pgrep -x top")


def test_a_ping_of_the_user_goes_on_after_a_pause(box: RawBox) -> None:
    told(box, "(ping -i 0.2 127.0.0.1 > /tmp/ping 2>&1 &) ; until grep -q icmp_seq /tmp/ping; do sleep 0.05; done")
    pause_and_resume(box)
    told(box, ": > /tmp/ping; until grep -q icmp_seq /tmp/ping; do sleep 0.05; done; pgrep -x ping")


def test_java_throws_when_its_memory_is_out(box: RawBox) -> None:
    source = (
        "import java.util.*; public class Eat { public static void main(String[] a) { List<byte[]> l = new "
        "ArrayList<>(); try { for (;;) l.add(new byte[8 << 20]); } catch (OutOfMemoryError e) { l = null; "
        'System.out.println("thrown"); } } }'
    )
    told(box, f"cat > /tmp/Eat.java <<'X'\n{source}\nX")
    assert told(box, "java /tmp/Eat.java") == "thrown"


def test_the_numbers_can_not_be_written(box: RawBox) -> None:
    for path in ("/proc/meminfo", "/proc/stat", "/proc/loadavg", "/sys/devices/system/cpu/online"):
        assert box.run(f"echo x > {path}", user="root")[0] != 0
        assert box.run(f"chmod 666 {path}", user="root")[0] != 0
    assert box.run("echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes || echo max > /sys/fs/cgroup/memory.max",
                   user="root")[0] != 0  # fmt: skip


def test_a_box_that_reads_without_pause_holds_nobody_up(wire: Wire, box: RawBox) -> None:
    loop = "while :; do read x < /proc/meminfo; done"
    told(box, "; ".join(f"(timeout 8 bash -c '{loop}' > /dev/null 2>&1 &)" for _ in range(8)))
    other = wire.create("base", timeout=60)
    try:
        told(other, f"cat > /tmp/reader.py <<'X'\n{READER}X")
        told(other, "timeout 3 python3 /tmp/reader.py; true")
        assert float(told(other, "cat /tmp/worst")) < 500  # milliseconds; the machine is shared
        told(box, "head -1 /proc/meminfo")
    finally:
        other.kill()


def test_reads_go_on_while_the_warden_and_the_whole_daemon_are_gone(server: Server) -> None:
    box = server.wire.create("base", timeout=300)
    told(box, f"cat > /tmp/reader.py <<'X'\n{READER}X\n(python3 /tmp/reader.py > /tmp/said 2>&1 &)")
    eventually(lambda: box.run("cat /tmp/worst")[0] == 0, 10)

    def moves() -> bool:
        before = used_mb(box)
        eat(box, 200, 2)
        return used_mb(box) >= before + 150

    assert moves()
    for pid in server.wardens():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{box.id}").status == 200, 30)
    eventually(moves, 30)
    server.signal(signal.SIGTERM)
    time.sleep(1)  # a while without a daemon, in which the reader goes on
    server.start()
    box = RawBox(server.wire, box.made)
    eventually(moves, 30)
    assert told(box, "pgrep -f reader.py | wc -l") != "0", told(box, "cat /tmp/said")
    assert float(told(box, "cat /tmp/worst")) < 1000
    assert told(box, "cat /tmp/said") == ""
    box.kill()
