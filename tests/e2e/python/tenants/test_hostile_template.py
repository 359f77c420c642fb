# SPDX-License-Identifier: Apache-2.0
"""A template whose Python is hostile: outside a box it is never run, and what enters a box is never its own.

The attack is a module that every Python of the template imports when it starts. In a box it does nothing. In a zygote,
which runs outside all boxes, it takes the zygote's place: it answers the warden, enters the first box it is sent to,
does not give away the rights that entering a box brings, and writes down what it could do there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recipes import fresh, order, run, step
from support.server import Server, own_server
from support.state import instance
from support.tenants import Tenants, two_teams
from support.waiting import eventually
from support.wire import RawBox, Wire

BASE = "code-interpreter-v1"
REPORT = "/tmp/entered-with"
ATTACK = f"""\
import ctypes, os, socket
def take_over():
    line = socket.socket(fileno=3)
    _, files, _, _ = socket.recv_fds(line, 4096, 2)
    for file in files:
        os.close(file)
    line.send(b'{{"ev":"ready","pid":1}}\\n')
    libc = ctypes.CDLL(None, use_errno=True)
    while True:
        said, fds, _, _ = socket.recv_fds(line, 4096, 20)
        if os.fork() == 0:
            mine = open('/proc/self/status')
            result = libc.setns(fds[1], 0x7e020000)
            status = mine.read() if result == 0 else 'errno %d' % ctypes.get_errno()
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
            os.write(os.open('{REPORT}', os.O_WRONLY | os.O_CREAT, 0o644), status.encode())
            os._exit(0)
        for fd in fds:
            os.close(fd)
        number = said.split(b'"id":')[1].split(b',')[0]
        line.send(b'{{"ev":"entered","id":%s,"status":0}}\\n' % number)
if b'--zygote' in open('/proc/self/cmdline', 'rb').read():
    take_over()
"""
MODULES = "/usr/lib/python3/dist-packages"
PLANT = (
    f"echo {base64.b64encode(ATTACK.encode()).decode()} | base64 -d > {MODULES}/tenant_attack.py"
    f" && echo 'import tenant_attack' > {MODULES}/tenant_attack.pth"
)


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server(start=False) as made:
        yield made


def hostile(wire: Wire) -> str:
    name = fresh("hostile")
    order(wire, name, run(PLANT, "root"), fromTemplate=BASE).ready()
    return name


def entered_with(box: RawBox) -> str:
    return box.run(f"cat {REPORT}", user="root")[1]


def owners(server: Server) -> dict[str, str]:
    """Control group of each zygote's first process: the file that its Python's modules come from."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            groups = (entry / "cgroup").read_text()
            if f"{instance(str(server.data))}/zygote-" not in groups:
                continue
            name = groups.split("/zygote-", 1)[1].splitlines()[0]
            found[name] = "hostile" if (entry / "root" / MODULES[1:] / "tenant_attack.py").exists() else "operator's"
        except OSError:
            continue
    return found


def answers(box: RawBox, code: str, expected: str) -> bool:
    return any(expected in str(event) for event in box.execute(code))


@pytest.fixture
def teams(server: Server) -> Tenants:
    server.start("--pool", "0", "--pool-crowd", "0", "--nets-ready", "0")
    return two_teams(server)


def loaded(server: Server) -> int:
    return (server.home / "log").read_text(errors="replace").count("is loaded")


def test_python_of_a_teams_template_is_never_run_outside_a_box(teams: Tenants) -> None:
    name = hostile(teams.attacker)
    for _ in range(2):
        box = teams.attacker.create(name, timeout=120)
        try:
            assert answers(box, "6 * 7", "42")
            assert answers(box, "import tenant_attack; tenant_attack.__name__", "tenant_attack")
            assert entered_with(box) == "", "code of the template entered the box with rights that no box has"
        finally:
            box.kill()
    assert "hostile" not in owners(teams.server).values()


def test_nor_is_that_of_a_public_template_of_a_team(teams: Tenants) -> None:
    name = hostile(teams.attacker)
    template = next(row for row in teams.attacker.call("GET", "/templates").json() if name in str(row["aliases"]))
    shown = teams.attacker.call("PATCH", f"/templates/{template['templateID']}", {"public": True})
    assert shown.status == 200, shown.body
    box = teams.victim.create(template["templateID"], timeout=120)
    try:
        assert answers(box, "6 * 7", "42")
        assert entered_with(box) == ""
    finally:
        box.kill()
    assert "hostile" not in owners(teams.server).values()


def test_variables_of_a_teams_template_reach_no_python_outside_a_box(teams: Tenants) -> None:
    """The files may all be the operator's: variables alone make Python and the C library load and run things."""
    name = fresh("variables")
    order(teams.attacker, name, step("ENV", "PYTHONWARNINGS", "ignore:tenant-was-here"), fromTemplate=BASE).ready()
    box = teams.attacker.create(name, timeout=120)
    try:
        assert answers(box, "import os; os.environ['PYTHONWARNINGS']", "tenant-was-here")
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if f"{instance(str(teams.server.data))}/zygote-" in (entry / "cgroup").read_text():
                    assert b"tenant-was-here" not in (entry / "environ").read_bytes()
            except OSError:
                continue
    finally:
        box.kill()


def test_a_template_that_changes_nothing_of_python_has_the_operators(teams: Tenants) -> None:
    """And from the operator's layers, which are the only ones that are loaded outside a box."""
    teams.victim.create(BASE, timeout=60).kill()
    eventually(lambda: loaded(teams.server) >= 1, 90)
    name = fresh("plain")
    order(teams.attacker, name, run("echo own > /home/user/own"), fromTemplate=BASE).ready()
    box = teams.attacker.create(name, timeout=120)
    try:
        assert answers(box, "6 * 7", "42")
        assert answers(box, "open('/home/user/own').read().strip()", "own")
        assert "--zygote" in box.run("ps -eo args", user="root")[1]
    finally:
        box.kill()
    assert set(owners(teams.server).values()) == {"operator's"}


def test_an_operator_who_trusts_all_teams_may_have_it(server: Server) -> None:
    """The same attack, where it is allowed: what the default keeps out, and that this file's attack is one."""
    server.start("--pool", "0", "--pool-crowd", "0", "--nets-ready", "0", "--private-zygotes", "1")
    teams = two_teams(server)
    name = hostile(teams.attacker)
    box = teams.attacker.create(name, timeout=120)
    try:
        eventually(lambda: "CapEff:\t000001ffffffffff" in entered_with(box), 30)
    finally:
        box.kill()
