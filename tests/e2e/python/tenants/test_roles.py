# SPDX-License-Identifier: Apache-2.0
"""What the server's own processes hold in memory is for nobody: no core dumps, and no tracing by who has their user.

The host is one on which whatever changes its identity becomes dumpable (fs.suid_dumpable = 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import children, own_server, user_of
from support.tenants import Tenants, two_teams


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    setting = Path("/proc/sys/fs/suid_dumpable")
    before = setting.read_text()
    setting.write_text("1")
    try:
        with own_server("--pool", "1") as made:
            yield two_teams(made)
    finally:
        setting.write_text(before)


def of_the_server(top: int) -> dict[int, str]:
    """The processes below the supervisor that are in the host's own pid namespace, or zygotes, by pid."""
    found: dict[int, str] = {}
    own = Path("/proc/self/ns/pid").readlink()
    for pid in (top, *(child for role in children(top) for child in (role, *children(role)))):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if Path(f"/proc/{pid}/ns/pid").readlink() == own or b"--zygote" in words:
            found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
            for child in children(pid):
                if Path(f"/proc/{child}/comm").read_text().strip() == "dns-proxy":
                    found[child] = "dns-proxy"
    return found


def test_no_process_of_the_server_leaves_a_core_or_can_be_traced_by_its_user(tenants: Tenants) -> None:
    box = tenants.attacker.create("code-interpreter-v1", timeout=120)
    assert box.run("echo alive")[1] == "alive\n"
    assert "".join(str(event.get("text")) for event in box.execute("print(1)"))  # a zygote is loaded
    found = of_the_server(tenants.server.pid)
    names = set(found.values())
    assert {"cloche-warden", "cloche-gate"} <= names, names
    dumps, traced = [], []
    for pid, name in found.items():
        limit = next(
            line.split()[4:6]
            for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
            if line.startswith("Max core file size")
        )
        if limit not in (["1", "1"], ["0", "0"]):
            dumps.append((name, limit))
        # What can be traced by its own user has files in /proc that belong to that user, not to root.
        if user_of(pid) != 0 and Path(f"/proc/{pid}/mem").stat().st_uid != 0:
            traced.append((name, user_of(pid)))
    box.kill()
    assert dumps == [], (dumps, traced)
    assert traced == [], (dumps, traced)
