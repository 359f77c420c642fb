# SPDX-License-Identifier: Apache-2.0
"""What must not be found: values of header rules on the disk, the master key and secrets in memory of other roles."""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import e2b
import pytest

from support.far_side import access, ask, far_side, gateways, rules, seen
from support.server import binary, children, own_server, user_of
from support.world import Abroad, World, run

LITERAL = "literal-5d1f-of-the-first-rules"
SECOND = "literal-77c2-of-the-second-rules"
OLD = "literal-0a9e-of-an-older-server"
QUIET = "https://api.example.com/quiet"  # whose answer tells the box nothing of the request
MARK = "m4rk-that-is-found"


@pytest.fixture(scope="module")
def far(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with far_side(world, tmp_path_factory.mktemp("far")) as folder:
        yield folder


@pytest.fixture
def server(world: World, far: Path) -> Iterator[Abroad]:
    made = Abroad(world)
    made.resolve_there()
    with own_server("--egress-roots", str(far / "ca.pem"), "--network-log", "full", made=made) as running:
        yield running


def in_file(path: Path, mark: bytes) -> bool:
    """Whether the written parts of a file hold it; images of disks are mostly holes."""
    with path.open("rb", buffering=0) as file:
        size, at, rest = os.fstat(file.fileno()).st_size, 0, b""
        while at < size:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return False
            end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            rest = rest if begin == at else b""
            at = min(end, begin + (4 << 20))
            part = rest + os.pread(file.fileno(), at - begin, begin)
            if mark in part:
                return True
            rest = part[-len(mark) :]
    return False


def holds(server: Abroad, text: str) -> list[str]:
    """Files of the server that hold the text: its database, logs, checkpoints, disks of boxes, all of it."""
    device, found = server.home.stat().st_dev, []
    for folder, names, files in os.walk(server.home):
        names[:] = [name for name in names if os.lstat(f"{folder}/{name}").st_dev == device]
        for name in files:
            path = Path(folder) / name
            try:
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_dev == device and in_file(path, text.encode()):
                    found.append(str(path))
            except FileNotFoundError:
                continue  # it goes while others are looked at
    return found


def told(server: Abroad, box: str) -> Any:
    got = server.wire.call("GET", f"/sandboxes/{box}")
    assert got.status == 200, got.text
    return got.json()["network"]["rules"]["api.example.com"][0]["transform"]["headers"]


def keyed(server: Abroad) -> str:
    """A box of a create with an idempotency key, whose answer is kept as well."""
    body = {"templateID": "base", "timeout": 120, "network": rules(X_Key=LITERAL), "secure": True}
    answers = [server.wire.call("POST", "/v2/sandboxes", body, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert [each.status for each in answers] == [201, 201], answers[1].text
    assert answers[0].json()["sandboxID"] == answers[1].json()["sandboxID"]
    return str(answers[0].json()["sandboxID"])


def test_values_of_rules_lie_nowhere_in_the_clear(server: Abroad) -> None:
    with server.box(network=rules(X_Key=LITERAL), metadata={"mark": MARK}) as box:
        assert ask(box, QUIET) == {}
        assert told(server, box.sandbox_id) == {"X_Key": LITERAL}
        other = keyed(server)
        fork = server.wire.call("POST", f"/sandboxes/{box.sandbox_id}/fork", {"timeout": 120})
        assert fork.status == 201, fork.text
        forked = fork.json()[0]["sandbox"]["sandboxID"]
        assert told(server, forked) == {"X_Key": LITERAL}
        snapshot = server.wire.call("POST", f"/sandboxes/{box.sandbox_id}/snapshots", {})
        assert snapshot.status == 201, snapshot.text
        changed = server.wire.call("PUT", f"/sandboxes/{box.sandbox_id}/network", rules(X_Key=SECOND))
        assert changed.status == 204, changed.text
        assert told(server, box.sandbox_id) == {"X_Key": SECOND}
        box.pause()
        assert server.wire.call("POST", f"/sandboxes/{forked}/pause").status == 204
        assert holds(server, MARK) != []  # the search finds what is there
        assert [holds(server, text) for text in (LITERAL, SECOND)] == [[], []]
        server.stop()
        assert [holds(server, text) for text in (LITERAL, SECOND)] == [[], []]
        server.start(*server.flags)
        assert (told(server, box.sandbox_id), told(server, forked)) == ({"X_Key": SECOND}, {"X_Key": LITERAL})
        words = [binary(), "secret", "rotate-key", "--data", str(server.data)]
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        server.stop()
        server.start(*server.flags)
        assert told(server, box.sandbox_id) == {"X_Key": SECOND}, "another master key sealed it since"
        for each in (forked, other):
            server.wire.call("DELETE", f"/sandboxes/{each}")


def test_rows_of_an_older_server_are_sealed_at_its_start(server: Abroad) -> None:
    """They had the rules in the open row; also its old pages are gone."""
    with server.box(network=rules(X_Key=LITERAL), metadata={"mark": MARK}) as box:
        box.pause()
        server.stop()
        link = sqlite3.connect(server.data / "cloche.db")
        with link:
            (config,) = link.execute("SELECT config FROM box WHERE id = ?", (box.sandbox_id,)).fetchone()
            open_row = json.loads(config)
            assert "rules" not in open_row["network"]
            open_row["network"]["rules"] = rules(X_Key=OLD)["rules"]
            link.execute("UPDATE box SET config = ? WHERE id = ?", (json.dumps(open_row), box.sandbox_id))
        link.close()
        assert holds(server, OLD) != []
        server.start(*server.flags)
        assert holds(server, OLD) == []
        assert told(server, box.sandbox_id) == {"X_Key": OLD}
        assert server.wire.call("GET", f"/sandboxes/{box.sandbox_id}").json()["metadata"] == {"mark": MARK}
        server.stop()
        assert holds(server, OLD) == []
        server.start(*server.flags)
        assert told(server, box.sandbox_id) == {"X_Key": OLD}


# ---- memory ----


def in_memory(pid: int, *texts: bytes) -> set[bytes]:
    """Which of the texts the process has in memory that it may read; the kernel lets root look."""
    found: set[bytes] = set()
    try:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in maps:
                words = line.split()
                begin, end = (int(each, 16) for each in words[0].split("-"))
                shared = "s" in words[1] or (len(words) > 5 and words[5] in ("[vvar]", "[vsyscall]"))
                if "r" not in words[1] or shared or end - begin > 1 << 30:
                    continue
                found |= search(memory.fileno(), begin, end, texts)
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended meanwhile
    return found


def search(fd: int, begin: int, end: int, texts: tuple[bytes, ...]) -> set[bytes]:
    found: set[bytes] = set()
    step, keep = 4 << 20, max(map(len, texts))
    for at in range(begin, end, step):
        try:
            part = os.pread(fd, min(step + keep, end - at), at)
        except OSError:
            continue  # a guard page, or a device
        found |= {text for text in texts if text in part}
    return found


def shares_memory(pid: int, other: int) -> bool:
    """The two run in one address space, as one that waits to become the first process of a box does with the warden."""
    kcmp, of_memory = 312, 1
    return ctypes.CDLL(None, use_errno=True).syscall(kcmp, pid, other, of_memory, 0, 0) == 0


def all_below(pid: int) -> list[int]:
    found = [pid]
    for child in children(pid):
        found += all_below(child)
    return found


def role_of(server: Abroad, pid: int) -> str:
    if pid in server.wardens():
        return "warden"
    return "egress" if pid in gateways(server) else Path(f"/proc/{pid}/comm").read_text().strip()


def test_only_the_warden_has_the_master_key_and_only_the_gateway_values_beside_it(server: Abroad) -> None:
    """Every process of the server and of its boxes is looked into; also those that were started before and after."""
    value = "sk-v4lue-for-memory-of-roles-91c5"
    key = bytes.fromhex((server.data / "secrets.key").read_text().split()[0])
    hexadecimal = key.hex().encode()
    e2b.Secret.create("memory-key", value, **access(server))
    filled = rules(Authorization=f"Bearer {e2b.Secret.fill('memory-key')}", X_Key=LITERAL)
    with server.box(network=filled) as box, server.box() as plain:
        assert ask(box, QUIET) == {}
        assert seen(server.world)[-1]["fields"]["authorization"] == f"Bearer {value}"
        run(plain, "getent hosts api.example.com")
        box.pause()
        box.connect()
        key_in: dict[str, list[str]] = {}
        value_in: dict[str, list[str]] = {}
        processes = all_below(server.pid)
        roles = {role_of(server, pid) for pid in processes if user_of(pid) is not None}
        assert {"warden", "egress", "netlog", "netlog-keeper"} <= roles, roles
        for pid in processes:
            if user_of(pid) is None:
                continue
            role = "warden" if shares_memory(pid, server.wardens()[0]) else role_of(server, pid)
            found = in_memory(pid, key, hexadecimal, value.encode(), LITERAL.encode())
            for text in found & {key, hexadecimal}:
                key_in.setdefault(role, []).append("key" if text == key else "its text")
            for text in found - {key, hexadecimal}:
                value_in.setdefault(role, []).append(text.decode())
        assert set(key_in) == {"warden"}, key_in
        assert "egress" in value_in, "the search finds what is there"
        # Literal values are told back to who may see the box: gates carry them. Secrets' values stay in no gate.
        allowed = {"warden": {value, LITERAL}, "egress": {value, LITERAL}, "cloche-gate": {LITERAL}}
        for role, texts in value_in.items():
            assert set(texts) <= allowed.get(role, set()), (role, texts)
