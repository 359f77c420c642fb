# SPDX-License-Identifier: Apache-2.0
"""The log ring is the box's own to write: reading it costs its owner time, and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from support.server import own_server
from support.tenants import Tenants, slowest_answer, two_teams
from support.wire import RawBox


@pytest.fixture(scope="module")
def large() -> Iterator[Tenants]:
    """A server with one gate, whose rings may be as large as any request reads."""
    with own_server("--gates", "1", "--log-bytes", str(8 << 20)) as made:
        yield two_teams(made)


def crafted(tenants: Tenants, box: RawBox) -> tuple[int, str, str]:
    assert box.run("echo first words: the agent has made its ring")[0] == 0
    return tenants.attack(box, "ring", "8")


def test_a_crafted_ring_does_not_stop_a_gate(large: Tenants) -> None:
    box = large.attacker.create(timeout=120)
    try:
        code, out, err = crafted(large, box)
        assert code == 0, err
        assert int(out.split()[0]) > 100_000
        calm = slowest_answer(large.victim, 1)
        stop = threading.Event()
        answers = []

        def ask() -> None:
            while not stop.is_set():
                answers.append(large.attacker.call("GET", f"/v2/sandboxes/{box.id}/logs", timeout=60).status)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        try:
            worst = slowest_answer(large.victim, 4)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert set(answers) == {200}, set(answers)
        assert worst < max(0.25, 5 * calm), (worst, calm)
    finally:
        box.kill()


def test_a_ring_larger_than_the_server_allows_is_cut(tenants: Tenants) -> None:
    """1 MiB is the default; a box that writes 8 has the newest 1 of it read, and gets a whole answer."""
    box = tenants.attacker.create(timeout=60)
    try:
        assert crafted(tenants, box)[0] == 0
        got = tenants.attacker.call("GET", f"/sandboxes/{box.id}/logs?start=0")
        assert got.status == 200
        assert len(got.json()["logEntries"]) == 1000
        assert got.json()["logEntries"][0]["timestamp"].startswith("1970-01-01")
    finally:
        box.kill()


@pytest.mark.parametrize(
    "head",
    [
        b"CLOCHLOG" + bytes(16),
        b"CLOCHLOG" + (2**64 - 1).to_bytes(8, "little") * 2,
        b"CLOCHLOG" + (1 << 20).to_bytes(8, "little") + (2**64 - 1).to_bytes(8, "little"),
        b"CLOCHLOG" + (1).to_bytes(8, "little") + (2**40).to_bytes(8, "little"),
        b"CLOCHLO",
        b"",
    ],
)
def test_lying_heads_give_an_empty_log(tenants: Tenants, head: bytes) -> None:
    box = tenants.attacker.create(timeout=60)
    try:
        assert box.run("echo first words: the agent has made its ring")[0] == 0
        octal = "".join(f"\\{byte:03o}" for byte in head)
        code, _out, err = box.run(
            f"rm /dev/shm/.cloche-log; printf '{octal}' > /dev/shm/.cloche-log; truncate -s +100 /dev/shm/.cloche-log",
            user="root",
        )
        assert code == 0, err
        got = tenants.attacker.call("GET", f"/v2/sandboxes/{box.id}/logs")
        assert got.status == 200
        assert got.json()["logs"] == []
    finally:
        box.kill()


def test_logs_in_both_directions_are_as_printed(tenants: Tenants) -> None:
    box = tenants.victim.create(timeout=60)
    try:
        box.run("for i in 1 2 3 4 5; do echo line $i; done")
        newest = tenants.victim.call("GET", f"/v2/sandboxes/{box.id}/logs?limit=2").json()["logs"]
        oldest = tenants.victim.call(
            "GET", f"/v2/sandboxes/{box.id}/logs?direction=forward&search=line&limit=2"
        ).json()["logs"]
        assert [e["message"] for e in newest if e["message"].startswith("line")] == ["line 5", "line 4"]
        assert [e["message"] for e in oldest] == ["line 1", "line 2"]
    finally:
        box.kill()
