# SPDX-License-Identifier: Apache-2.0
"""What the kernel counts by user, by a namespace's owner or for the whole host: a box that takes all it can get leaves
others theirs.

Boxes of one template have one owner outside, the zygote's user, and the kernel adds up there what they have.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tenants import Tenants, put_program
from support.waiting import eventually
from support.wire import RawBox

CAP_SYS_RESOURCE = 24
TEMPLATE = "code-interpreter-v1"
KINDS = ["queue", "timer", "lock", "aio", "inotify", "epoll", "pipe"]
ADDED_UP = {"queue": "msgqueue", "timer": "pending"}  # for the owner; the daemon lifts that limit where it may
LIMITS = {"MSGQUEUE": (12, 819200), "SIGPENDING": (11, 16384), "MEMLOCK": (8, 8 << 20)}  # number, most of one user
SHARE = 8  # of what the daemon has, where it may not lift it


@pytest.fixture
def boxes(tenants: Tenants) -> Iterator[tuple[RawBox, RawBox]]:
    """Both with a fork of the one zygote: their namespaces have one owner."""
    log = tenants.server.home / "log"
    eventually(lambda: f"zygote of {TEMPLATE} is loaded" in log.read_text(errors="replace"), 90)
    made = [wire.create(TEMPLATE, timeout=180) for wire in (tenants.attacker, tenants.victim)]
    for box in made:
        assert box.execute("1 + 1")
        assert "--zygote" in box.run("ps -eo args", user="root")[1]
    yield made[0], made[1]
    for box in made:
        box.kill()


def lifted(tenants: Tenants, name: str) -> bool:
    lines = Path(f"/proc/{tenants.server.wardens()[0]}/limits").read_text().splitlines()
    return any(name in line and "unlimited" in line for line in lines)


@pytest.mark.parametrize("users", [1, 12], ids=["one user", "many users"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_box_can_not_take_it_all(tenants: Tenants, boxes: tuple[RawBox, RawBox], kind: str, users: int) -> None:
    if users > 1 and kind in ADDED_UP and not lifted(tenants, ADDED_UP[kind]):
        assert "CAP_SYS_RESOURCE" in (tenants.server.home / "log").read_text(errors="replace")
        pytest.skip("this host's root may not lift the owner's limit (no CAP_SYS_RESOURCE), and the server says so")
    attacker, victim = boxes
    program, other = (put_program(box, "uid_limits") for box in boxes)
    assert attacker.run(f"nohup {program} take {kind} {users} > /tmp/taken 2>&1 & sleep 0.1", user="root")[0] == 0
    eventually(lambda: "taken" in attacker.run("cat /tmp/taken")[1], 60)
    assert int(attacker.run("cat /tmp/taken")[1].split("taken ")[1]) > 0
    for user in ("root", "user"):
        code, _out, err = victim.run(f"{other} one {kind}", user=user)
        assert code == 0, f"{kind} of another team's {user}: {err}"
    assert any("42" in str(event) for event in victim.execute("6 * 7"))


def test_groups_of_fanotify_are_nobodys(boxes: tuple[RawBox, RawBox]) -> None:
    """The host has 128 of them for all boxes of an owner, and programs use inotify."""
    code, _out, err = boxes[0].run(f"{put_program(boxes[0], 'uid_limits')} one fanotify", user="root")
    assert (code, err.strip()) == (1, "fanotify: Function not implemented")


def expected_limits() -> list[tuple[int, int]]:
    found = []
    for name, (number, most) in LIMITS.items():
        own = resource.getrlimit(number)[1]
        may = bool(
            int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16) >> CAP_SYS_RESOURCE & 1
        )
        share = most if may or own == resource.RLIM_INFINITY else own if name == "MEMLOCK" else own // SHARE
        found.append((min(share, most),) * 2)
    return found


def test_commands_and_kernels_have_the_same_limits(boxes: tuple[RawBox, RawBox]) -> None:
    ask = f"import resource; [resource.getrlimit(n) for n in {[number for number, _most in LIMITS.values()]}]"
    expected = str(expected_limits())
    assert any(expected in str(event) for event in boxes[0].execute(ask)), boxes[0].execute(ask)
    code, out, err = boxes[0].run(f'python3 -c "{ask.replace("[", "print([", 1)})"', user="root")
    assert (code, out.strip()) == (0, expected), err


def test_no_number_of_the_host_runs_out_before_the_boxes_own_limits(tenants: Tenants) -> None:
    """Processes, files and requests of boxes are also the host's; eight boxes had as many as some kernels have
    numbers."""
    for name, least in (
        ("kernel/pid_max", 4194304),
        ("kernel/threads-max", 4194304),
        ("fs/file-max", 10**9),
        ("fs/aio-max-nr", 10**9),
    ):
        assert int((Path("/proc/sys") / name).read_text()) >= least, name
