# SPDX-License-Identifier: Apache-2.0
"""What enters a box from outside: root of the box copies from it, seizes it and stops it, and gains nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.paused import connect, pause
from support.server import Server, own_server
from support.state import instance
from support.tenants import Tenants, compiled, put_program, two_teams
from support.waiting import eventually, stays
from support.wire import INTERPRETER_PORT, RawBox

TEMPLATE = "code-interpreter-v1"
CELL_SECONDS = 6.0  # for a create and a first cell of another team; half a second on a quiet machine
REPORT = "tmp/false-agent"


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    """Without boxes made ahead: every create has a fork of the zygote enter a box."""
    with own_server("--pool", "0", "--pool-crowd", "0", "--pool-spare-percent", "0") as made:
        teams = two_teams(made)
        warmed(teams)
        yield teams


def warmed(tenants: Tenants) -> None:
    tenants.victim.create(TEMPLATE, timeout=60).kill()
    log = tenants.server.home / "log"
    eventually(lambda: f"zygote of {TEMPLATE} is loaded" in log.read_text(errors="replace"), 60)


@pytest.fixture
def attacker(tenants: Tenants) -> Iterator[RawBox]:
    box = tenants.attacker.create(TEMPLATE, timeout=180)
    assert box.execute("40 + 2")
    yield box
    box.kill()


class Beside(threading.Thread):
    """Does something while the test goes on; result() waits for it."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.value: object = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self.work()
        except Exception as error:
            self.value = error

    def result(self, seconds: float) -> object:
        self.join(seconds)
        assert not self.is_alive(), "still at it"
        return self.value


def ask_for_context(box: RawBox, timeout: float = 40) -> int:
    """Makes the agent ask for a nursery; the answer may be long in coming while processes of the box are stopped."""
    headers = {"X-Access-Token": box.token}
    try:
        return box.port(
            INTERPRETER_PORT, "POST", "/contexts", {"language": "python"}, headers=headers, timeout=timeout
        ).status
    except OSError:
        return 0


def ask_again_and_again(box: RawBox, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ask_for_context(box, 1)
        time.sleep(0.5)  # between attempts, of which none is waited for


def runs(program: str) -> None:
    """Waits until a program of that name runs in a box; seen from the host, because it may stop what looks inside."""

    def found() -> bool:
        for comm in Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if comm.read_text() == f"{program}\n":
                    return True
        return False

    eventually(found)


def first_cell(tenants: Tenants) -> float:
    """How long a create and a first cell of the victim take; one that never answers took as long as it was waited
    for."""
    began = time.monotonic()
    box = tenants.victim.create(TEMPLATE, timeout=60)
    try:
        events = box.execute("6 * 7")
        took = time.monotonic() - began
        assert any("42" in str(event) for event in events), events
    except OSError:
        return time.monotonic() - began
    finally:
        box.kill()
    return took


def test_a_fork_that_enters_has_nothing_to_copy(tenants: Tenants, attacker: RawBox) -> None:
    program = put_program(attacker, "enter_copy")
    attack = Beside(lambda: attacker.run(f"{program} 25", user="root"))
    runs("enter_copy")
    for _ in range(5):
        ask_for_context(attacker)
        first_cell(tenants)
    said = attack.result(40)
    assert isinstance(said, tuple), said
    _code, out, err = said
    assert "looked at 0" not in out, out
    assert "looked at" in out, (out, err)
    assert "FOREIGN" not in out, out
    assert "TAKEN" not in out, out


@pytest.fixture
def dumpable_host(request: pytest.FixtureRequest) -> Iterator[None]:
    """A host on which whatever changes its identity becomes dumpable (fs.suid_dumpable)."""
    setting = Path("/proc/sys/fs/suid_dumpable")
    before = setting.read_text()
    setting.write_text(request.param)
    yield
    setting.write_text(before)


@pytest.mark.parametrize("dumpable_host", ["0", "1"], indirect=True)
@pytest.mark.usefixtures("dumpable_host")
def test_what_has_a_pid_in_a_box_holds_nothing_of_outside(tenants: Tenants, tmp_path: Path) -> None:
    """At every system call of every process between the zygote and a first cell, seen by a tracer on the host."""
    program = tmp_path / "enter_watch"
    program.write_bytes(compiled("enter_watch"))
    program.chmod(0o755)
    (zygote,) = zygotes(tenants.server)
    mask = capabilities_of_root(tenants)
    watch = subprocess.Popen([program, str(zygote), "12", mask], stdout=subprocess.PIPE, text=True)
    assert watch.stdout
    assert watch.stdout.readline() == "watching\n"
    for _ in range(2):
        tenants.victim.create(TEMPLATE, timeout=20)
    out, _ = watch.communicate(timeout=60)
    assert "looked at 0" not in out, out
    assert "looked at" in out, out
    assert "HOLDS" not in out, out


def capabilities_of_root(tenants: Tenants) -> str:
    box = tenants.victim.create("base", timeout=20)
    _code, out, _err = box.run("grep CapEff /proc/self/status", user="root")
    box.kill()
    return out.split()[1]


def test_stopped_processes_of_one_box_hold_up_no_other(tenants: Tenants, attacker: RawBox) -> None:
    quiet = min(first_cell(tenants) for _ in range(2))
    program = put_program(attacker, "enter_stop")
    attack = Beside(lambda: attacker.run(f"{program} 30", user="root"))
    runs("enter_stop")
    asked = Beside(lambda: ask_again_and_again(attacker, 16))
    took, end = [0.0], time.monotonic() + 16
    while time.monotonic() < end and max(took) < CELL_SECONDS:
        took.append(first_cell(tenants))
    said = attack.result(50)
    assert isinstance(said, tuple), said
    assert "stopped 0" not in said[1], said
    assert max(took) < CELL_SECONDS, (quiet, took, said)
    asked.result(45)


def false_agents() -> list[str]:
    """What false agents that are first processes of boxes have written: seen from the host."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            report = (entry / "root" / REPORT).read_text()
        except OSError:
            continue
        if any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in status.splitlines()):
            found.append(report)
    return found


def test_a_box_does_not_choose_its_first_process(tenants: Tenants, attacker: RawBox) -> None:
    fake = put_program(attacker, "enter_agent")
    shadow = put_program(attacker, "enter_shadow")
    code, out, _err = attacker.run(f"{shadow} {fake}", user="root")
    assert (code, out.splitlines()[-1]) == (0, "replaced"), out
    assert pause(attacker, memory=False).status == 204
    got = Beside(lambda: connect(attacker).status)
    stays(lambda: false_agents() == [], 7)  # a false agent looks around for eight seconds before it says it is ready
    assert got.result(40) == 201
    assert false_agents() == []
    assert attacker.run(f"cat /{REPORT}")[0] != 0
    assert attacker.run("cat /proc/1/comm")[1] == "cloche-agent\n"
    assert any("42" in str(event) for event in attacker.execute("6 * 7"))


def test_runtime_files_are_read_only(attacker: RawBox) -> None:
    for command in (
        "echo x > /usr/lib/cloche/agent",
        "rm -f /usr/lib/cloche/agent",
        "touch /usr/lib/cloche/kernels/python/planted",
        "rm -rf /usr/lib/cloche/kernels",
        "rmdir /usr/lib/cloche",
        "mv /usr/lib/cloche /usr/lib/elsewhere",
        "mount -o remount,rw /usr/lib/cloche",
        "umount /usr/lib/cloche",
    ):
        assert attacker.run(command, user="root")[0] != 0, command
    assert attacker.run("test -x /usr/lib/cloche/agent")[0] == 0


def test_runtime_files_stay_read_only_in_a_box_that_was_restored(attacker: RawBox) -> None:
    assert pause(attacker).status == 204
    assert connect(attacker).status == 201
    assert attacker.run("grep -c ' /usr/lib/cloche ' /proc/mounts")[1] == "1\n"
    assert attacker.run("touch /usr/lib/cloche/planted", user="root")[0] != 0
    assert attacker.run("mount -o remount,rw /usr/lib/cloche", user="root")[0] != 0
    assert any("42" in str(event) for event in attacker.execute("6 * 7"))
    assert ask_for_context(attacker) == 200


def zygotes(server: Server) -> set[int]:
    wardens = server.wardens()
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent in wardens and b"--zygote" in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def zygotes_of(tenants: Tenants) -> list[Path]:
    """Their processes, by the control group that each is in."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            groups = (entry / "cgroup").read_text()
        except OSError:
            continue
        if f"{instance(str(tenants.server.data))}/zygote-" in groups:
            found.append(entry)
    return found


def test_a_zygote_has_no_more_rights_than_a_box(tenants: Tenants) -> None:
    """Its Python and libraries are the template's, which a tenant may have built: it is a hostile program outside all
    boxes."""
    found = zygotes_of(tenants)
    assert found
    for process in found:
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        assert status["Seccomp"].strip() == "2"
        assert int(status["CapBnd"], 16) == 0
        assert int(status["CapPrm"], 16) == 0
        assert "0" not in status["Uid"].split()
        proc = [line for line in (process / "mountinfo").read_text().splitlines() if line.split()[4] == "/proc"]
        assert proc, "it sees other tenants' command lines"
        assert all("hidepid=" in line for line in proc), "it sees other tenants' command lines"
        group = next(
            line.rsplit(":", 1)[1] for line in (process / "cgroup").read_text().splitlines() if "zygote-" in line
        )
        limits = [
            *Path("/sys/fs/cgroup").glob(f"memory{group}/memory.limit_in_bytes"),
            Path(f"/sys/fs/cgroup{group}/memory.max"),
        ]
        text = next(limit.read_text().strip() for limit in limits if limit.exists())
        assert text != "max"
        assert int(text) <= 4 << 30
        assert os.statvfs(process / "root").f_blocks * os.statvfs(process / "root").f_frsize < 1 << 30, (
            "it can fill the host's disk"
        )


def test_a_zygote_that_does_not_answer_is_replaced(tenants: Tenants) -> None:
    before = zygotes(tenants.server)
    assert before
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    boxes = [tenants.victim.create(TEMPLATE, timeout=120) for _ in range(2)]
    try:
        eventually(lambda: not (zygotes(tenants.server) & before), 40)
        log = tenants.server.home / "log"
        loaded = log.read_text(errors="replace").count("is loaded")
        first_cell(tenants)
        eventually(lambda: log.read_text(errors="replace").count("is loaded") > loaded or zygotes(tenants.server), 60)
        eventually(lambda: first_cell(tenants) < CELL_SECONDS, 60)
    finally:
        for box in boxes:
            box.kill()


def test_a_zygote_has_a_filter_and_sees_no_process_of_the_host(tenants: Tenants) -> None:
    """It runs the libraries of a template, which a stranger may have built."""
    for pid in zygotes(tenants.server):
        status = Path(f"/proc/{pid}/status").read_text()
        assert "\nSeccomp:\t2\n" in status, status
        assert "\nCapEff:\t0000000000000000\n" in status, status
        mounts = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
        (proc,) = [line for line in mounts if " /proc " in line]
        assert "hidepid=invisible" in proc, proc
        (programs,) = [line for line in mounts if " /usr/lib/cloche " in line]
        assert programs.split()[5].split(",")[0] == "ro", "its programs are the template's to replace"
