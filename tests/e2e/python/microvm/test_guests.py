# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of isolation microvm, under emulation: a kernel of their own behind the same API."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import e2b
import pytest

from support.events import events
from support.guests import create, machines, run
from support.server import binary, own_server
from support.waiting import eventually
from support.world import HOST, INSIDE, PUBLIC, SERVICE, Abroad, address, reached

ONE, FAR = PUBLIC[1], PUBLIC[8]
pytestmark = pytest.mark.timeout(400)  # the first one makes QEMU's root and images of layers
EMPTY_CAPABILITIES = "0" * 16


@pytest.fixture(scope="module")
def guest(server: Abroad) -> str:
    return create(server, network={"denyOut": [ONE]})


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def last_cause(server: Abroad, box: str) -> str:
    told = eventually(lambda: [e for e in events(server.wire, box) if e["type"].endswith("killed")], 60)
    return str(told[0]["eventData"]["kill_cause"])


# ---- what every sandbox has ----


def test_a_guest_has_a_kernel_of_its_own(server: Abroad, guest: str) -> None:
    own = Path("/proc/sys/kernel/osrelease").read_text().strip()
    theirs = run(server, guest, "uname -r")
    assert "cloud" in theirs
    assert theirs != own


def test_info_and_ps_tell_the_isolation(server: Abroad, guest: str) -> None:
    assert server.wire.call("GET", f"/sandboxes/{guest}").json()["isolation"] == "microvm"
    listed = subprocess.run([binary(), "ps", "--data", server.data], capture_output=True, text=True, check=True).stdout
    assert next(line for line in listed.splitlines() if guest in line).endswith("microvm")


def test_files_written_are_read_back_in_the_guest(server: Abroad, guest: str) -> None:
    box = server.connect(guest)
    box.files.write("/home/user/a.txt", "through the door")
    assert box.files.read("/home/user/a.txt") == "through the door"
    assert run(server, guest, "stat -f -c %T / && cat /home/user/a.txt") == "overlayfs\nthrough the door"


def test_a_cell_runs_in_the_guest_and_keeps_its_state(server: Abroad, guest: str) -> None:
    box = server.connect(guest)
    box.run_code("where=$(uname -r)", language="bash", timeout=120)
    told = box.run_code("echo $where", language="bash", timeout=120)
    assert told.error is None
    assert "cloud" in "".join(told.logs.stdout)


def test_metrics_of_a_guest_are_those_of_its_own_disk(server: Abroad, guest: str) -> None:
    run(server, guest, "dd if=/dev/urandom of=/home/user/large bs=1M count=24 conv=fsync 2>&1")

    def disk() -> int:
        samples = server.wire.call("GET", f"/sandboxes/{guest}/metrics").json()
        return max((int(sample["diskUsed"]) for sample in samples), default=0)

    eventually(lambda: disk() >= 24 << 20, 30)
    assert disk() < 512 << 20


# ---- what only a guest has ----


def test_root_of_a_guest_may_mount(server: Abroad, guest: str) -> None:
    assert run(server, guest, "mkdir -p /mnt/t && mount -t tmpfs none /mnt/t && stat -f -c %T /mnt/t") == "tmpfs"


# ---- the network ----


def test_a_guest_reaches_what_its_lists_allow_and_nothing_of_the_host(server: Abroad, guest: str) -> None:
    box = server.connect(guest)
    never = [ONE, INSIDE, f"{HOST}:{SERVICE}", "169.254.0.1:3000"]
    assert reached(box, FAR, "www.example.com", *never) == {FAR, "www.example.com"}
    answer = server.wire.call("PUT", f"/sandboxes/{guest}/network", {"denyOut": ["0.0.0.0/0"]})
    assert answer.status < 300, answer.text
    assert reached(box, FAR) == set()


def test_guest_and_neighbour_do_not_reach_each_other(server: Abroad, guest: str) -> None:
    server.wire.call("PUT", f"/sandboxes/{guest}/network", {})
    box = server.connect(guest)
    with server.box() as neighbour:
        neighbour.commands.run("python3 -m http.server 8000", background=True)
        box.commands.run("python3 -m http.server 8000", background=True)
        places = {f"{address(b)}:8000" for b in (neighbour, box)}
        assert len(places) == 2
        eventually(lambda: reached(neighbour, "127.0.0.1:8000"), 20)
        eventually(lambda: reached(box, "127.0.0.1:8000"), 60)
        own = f"{address(neighbour)}:8000"
        assert reached(box, own) == set()
        assert reached(neighbour, *places) <= {own}


# ---- isolation ----


def test_qemu_has_no_rights_on_the_host(server: Abroad, guest: str) -> None:
    mine = machines(server)
    assert mine
    for pid in mine:
        status = status_of(pid)
        sets = {status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}
        assert sets == {EMPTY_CAPABILITIES}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert int(status["Uid"].split()[1]) >= 65536
        inside = {entry.name for entry in Path(f"/proc/{pid}/root").iterdir()}
        assert not inside & {"proc", "sys", "etc", "home", "var"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"isolation": "vm"}, "'isolation' must be"),
        ({"isolation": "microvm", "autoPause": True, "autoPauseMemory": False}, "can't be used with isolation"),
    ],
)
def test_a_create_that_can_not_be_served_is_refused(server: Abroad, body: dict[str, Any], words: str) -> None:
    answer = server.wire.call("POST", "/sandboxes", {"templateID": "base", **body})
    assert answer.status == 400
    assert words in answer.text


@pytest.mark.parametrize(("path", "body"), [("snapshots", {}), ("fork", {"count": 1}), ("pause", {"memory": False})])
def test_what_guests_can_not_do_yet_is_refused(server: Abroad, guest: str, path: str, body: dict[str, Any]) -> None:
    answer = server.wire.call("POST", f"/sandboxes/{guest}/{path}", body)
    assert answer.status == 400, answer.text
    assert "a sandbox of isolation 'microvm' can't be" in answer.text
    assert server.wire.call("GET", f"/sandboxes/{guest}").json()["state"] == "running"


# ---- its life and its end ----


def test_a_paused_guest_stands_still_and_goes_on(server: Abroad, guest: str) -> None:
    assert server.wire.call("POST", f"/sandboxes/{guest}/pause", {}).status == 204
    assert server.wire.call("GET", f"/sandboxes/{guest}").json()["state"] == "paused"
    assert server.connect(guest).commands.run("echo on", timeout=120).stdout == "on\n"


@pytest.mark.parametrize(
    ("signals_qemu", "cause"),
    [(True, "crashed: the guest's QEMU was killed"), (False, "crashed: the guest's kernel panicked")],
    ids=["qemu", "panic"],
)
def test_the_cause_of_a_death_is_told(server: Abroad, guest: str, signals_qemu: bool, cause: str) -> None:
    before = set(machines(server))
    short = create(server)
    if signals_qemu:
        (machine,) = set(machines(server)) - before
        os.kill(machine, signal.SIGKILL)
    else:
        with pytest.raises(Exception, match=r".*"):  # the answer never comes
            server.connect(short).commands.run("echo c > /proc/sysrq-trigger", user="root", timeout=20)
    assert last_cause(server, short) == cause
    assert set(machines(server)) == before


def test_a_guest_outlives_the_warden_and_the_server(server: Abroad, guest: str) -> None:
    (machine,) = machines(server)
    os.kill(server.wardens()[0], signal.SIGKILL)
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{guest}").status == 200, 60)
    assert run(server, guest, "echo there") == "there"
    server.signal(signal.SIGTERM)
    server.start(*server.flags)
    assert run(server, guest, "cat /home/user/a.txt") == "through the door"
    assert machines(server) == [machine]


def test_a_killed_guest_leaves_nothing(server: Abroad, guest: str) -> None:
    assert server.wire.call("DELETE", f"/sandboxes/{guest}").status == 204
    eventually(lambda: not machines(server), 30)
    with pytest.raises(e2b.NotFoundException):
        server.connect(guest)


def test_a_server_without_guests_says_so_and_makes_nothing_else(tmp_path: Path) -> None:
    with own_server("--microvm", str(tmp_path), "--internet", "0", "--pool", "0", "--gates", "1") as bare:
        answer = bare.wire.call("POST", "/sandboxes", {"templateID": "base", "isolation": "microvm"})
        assert answer.status == 501
        assert "isolation 'microvm' can't be had on this server" in answer.text
        assert bare.wire.call("GET", "/v2/sandboxes").json() == []
