# SPDX-License-Identifier: Apache-2.0
"""Root of one team's sandbox reads all of /proc and /sys: nothing there names another team's sandbox, or opens a
pressure trigger."""

from __future__ import annotations

import re

from support.tenants import Tenants


def names_on_the_host(tenants: Tenants) -> set[str]:
    """Sandboxes' own directories, whatever they are called."""
    return {entry.name for entry in (tenants.server.data / "boxes").iterdir() if len(entry.name) > 8}


def test_proc_and_sys_name_no_other_sandbox(tenants: Tenants) -> None:
    mine, theirs = tenants.attacker.create(timeout=120), tenants.victim.create(timeout=120)
    try:
        words = sorted({theirs.id, str(tenants.server.data), "disk.img"} | names_on_the_host(tenants))
        code, out, err = tenants.attack(mine, "host_names", *words)
        assert code == 0, err
        assert int(re.findall(r"read (\d+) files", out)[0]) > 200, out
        assert "found" not in out, out
    finally:
        mine.kill()
        theirs.kill()


def test_a_woken_sandbox_sees_no_more_than_a_new_one(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=120)
    try:
        look = (
            "ls -a /sys /sys/* /proc/pressure /proc/fs | sort; cat /proc/cmdline /proc/diskstats; "
            "awk '{print $5}' /proc/self/mountinfo | sort"
        )
        before = box.run(look, user="root")
        assert tenants.attacker.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert tenants.attacker.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 120}).status in (200, 201)
        assert box.run(look, user="root") == before
        assert "block" not in before[1].split()
    finally:
        box.kill()


def test_no_pressure_trigger_can_be_set(tenants: Tenants) -> None:
    box = tenants.attacker.create(timeout=60)
    try:
        for name in ("cpu", "io", "memory"):
            code, out, _err = box.run(
                f"exec 3<>/proc/pressure/{name} && echo 'some 500000 2000000' >&3 && echo set", user="root"
            )
            assert code != 0, (name, out)
    finally:
        box.kill()


def test_root_of_a_sandbox_does_not_reach_into_its_agent(tenants: Tenants) -> None:
    """The agent's memory holds the secret that the daemon knows it by."""
    box = tenants.attacker.create(timeout=60)
    try:
        code, out, err = tenants.attack(box, "first_process")
        assert code == 0, err
        assert out.count("refused") == 7, out
    finally:
        box.kill()


def test_programs_still_find_processors_and_links(tenants: Tenants) -> None:
    box = tenants.attacker.create("code-interpreter-v1", timeout=60)
    try:
        asked = "nproc --all; getconf _NPROCESSORS_CONF; cat /sys/devices/system/cpu/online; ls /sys/class/net/lo/mtu"
        code, out, err = box.run(asked, user="root")
        assert code == 0, err
        assert [int(word) > 0 for word in out.split()[:2]] == [True, True], out
        assert out.splitlines()[-1] == "/sys/class/net/lo/mtu"
        events = box.execute(
            "import os, psutil; print(os.cpu_count() > 0, psutil.cpu_count(logical=False) is not None)"
        )
        assert any("True" in str(event.get("text")) for event in events), events
    finally:
        box.kill()
