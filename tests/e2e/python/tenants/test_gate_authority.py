# SPDX-License-Identifier: Apache-2.0
"""A gate that was taken over: what it can ask the warden on its own link, and what is to be found in its memory.

The test takes the link out of the running gate (as root it may), stops the gate and speaks in its place.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import select
import signal
import socket
import sqlite3
import struct
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, own_server
from support.tenants import Tenants, two_teams

HEADER = Path(__file__).resolve().parents[4] / "src" / "wire" / "wire.h"
PIDFD_GETFD = 438


def numbers(prefix: str, kind: str) -> dict[str, int]:
    """The values of an enum of wire.h."""
    text = re.search(rf"enum {kind} {{(.*?)\n}};", HEADER.read_text(), re.S)
    assert text
    found, value = {}, 0
    for name, given in re.findall(rf"\b({prefix}_\w+)(?: = (\d+))?,", re.sub(r"/\*.*?\*/", "", text[1], flags=re.S)):
        value = int(given) if given else value + 1
        found[name] = value
    return found


TYPE = numbers("WIRE", "wire_type")
TAG = numbers("W", "wire_tag")


class Link:
    """The gate's end of its link."""

    def __init__(self, gate: int) -> None:
        sequenced = {
            line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if line.split()[4] == "0005"
        }
        pidfd = os.pidfd_open(gate)
        names = {int(fd): os.readlink(f"/proc/{gate}/fd/{fd}") for fd in os.listdir(f"/proc/{gate}/fd")}
        links = [fd for fd, name in names.items() if fd != 3 and name[8:-1] in sequenced]
        assert len(links) == 1, names
        taken = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, pidfd, links[0], 0)
        assert taken >= 0, os.strerror(ctypes.get_errno())
        os.close(pidfd)
        self.socket = socket.socket(fileno=taken)
        self.socket.settimeout(20)
        self.next = 1 << 40

    def question(self, kind: str, **fields: str | int | bytes) -> bytes:
        self.next += 1
        packet = struct.pack("<IiQ", TYPE[kind], 0, self.next)
        for name, value in fields.items():
            number = struct.pack("<Q", value) if isinstance(value, int) else b""
            raw = value if isinstance(value, bytes) else number or value.encode()
            packet += struct.pack("<II", TAG[name], len(raw)) + raw + bytes(-len(raw) % 8)
        return packet

    def ask(self, kind: str, **fields: str | int | bytes) -> tuple[int, list[dict[int, bytes]], dict[int, bytes]]:
        """Status, items and the reply's fields."""
        self.socket.settimeout(20)
        self.socket.send(self.question(kind, **fields))
        items = []
        while True:
            data, passed, _flags, _from = socket.recv_fds(self.socket, 1 << 20, 4)
            for fd in passed:
                os.close(fd)
            got, status, number = struct.unpack_from("<IiQ", data)
            if number != self.next:
                continue
            if got == TYPE["WIRE_REPLY"]:
                return status, items, self._fields(data)
            items.append(self._fields(data))

    @staticmethod
    def _fields(data: bytes) -> dict[int, bytes]:
        found, at = {}, 16
        while at < len(data):
            tag, size = struct.unpack_from("<II", data, at)
            found[tag] = data[at + 8 : at + 8 + size]
            at += 8 + size + -size % 8
        return found


@pytest.fixture
def taken() -> Iterator[tuple[Tenants, Link]]:
    """Two teams on a server with one gate, which is stopped and whose link to the warden, its only one, is ours."""
    flags = ("--gates", "1", "--pool", "0", "--audit", "off", "--admin-token", "the-administrators-own")
    with own_server(*flags) as made:
        tenants = two_teams(made)
        (gate,) = made.gates()
        try:
            yield tenants, Link(gate)
        finally:
            for gate in made.gates():
                os.kill(gate, signal.SIGCONT)


def stop(server: Server) -> None:
    for gate in server.gates():
        os.kill(gate, signal.SIGSTOP)


def team_of(tenants: Tenants, which: str) -> str:
    wire = tenants.victim if which == "victim" else tenants.attacker
    return wire.call("GET", "/teams").json()[0]["teamID"]


def test_a_taken_gate_has_no_authority(taken: tuple[Tenants, Link]) -> None:
    tenants, link = taken
    box = tenants.victim.create(timeout=300)
    team = team_of(tenants, "victim")
    stop(tenants.server)
    refused = {
        # root's own questions
        "token of any box": link.ask("WIRE_BOX_TOKEN", W_ID=box.id),
        "team's limits": link.ask("WIRE_TEAM_PUT", W_TEAM=team, W_LIMIT_BOXES=1000),
        "new team": link.ask("WIRE_TEAM_PUT", W_NAME="Mine"),
        "collect garbage": link.ask("WIRE_GC", W_MODE=0, W_TIMEOUT=0),
        # the administrator's
        "teams": link.ask("WIRE_TEAM_LIST"),
        "end all boxes of a team": link.ask("WIRE_TEAM_KILL", W_TEAM=team),
        # any team's, by naming it or none
        "all boxes": link.ask("WIRE_BOX_LIST"),
        "boxes of a team": link.ask("WIRE_BOX_LIST", W_TEAM=team),
        "keys of a team": link.ask("WIRE_KEY_LIST", W_TEAM=team),
        "a key of a team": link.ask(
            "WIRE_KEY_CREATE", W_TEAM=team, W_NAME="x", W_KEYHASH=b"k" * 32, W_MASK="e2b_:40:aa:aaaa"
        ),
        "pause": link.ask("WIRE_BOX_PAUSE", W_ID=box.id, W_TEAM=team),
        "log": link.ask("WIRE_BOX_LOG", W_ID=box.id, W_TEAM=team),
        "connect": link.ask("WIRE_BOX_CONNECT", W_ID=box.id, W_MODE=0, W_TIMEOUT=3600),
        "upload": link.ask("WIRE_FILE_OPEN", W_TEAM=team, W_NAME="a" * 64, W_ID="abcdefgh12"),
        "kill": link.ask("WIRE_BOX_KILL", W_ID=box.id, W_TEAM=team),
    }
    allowed = [name for name, (status, items, _reply) in refused.items() if status == 0 or items]
    assert not allowed, allowed


def test_a_taken_gate_wakes_a_box_with_its_memory(taken: tuple[Tenants, Link]) -> None:
    """Traffic may wake it without a key; whether its memory is given up is for a key of its team to say."""
    tenants, link = taken
    box = tenants.victim.create(timeout=300, autoPause=True, autoResume={"enabled": True})
    box.run("mkdir -p /dev/shm/kept")  # in memory only: a cold start has an empty /dev/shm
    assert tenants.victim.call("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
    stop(tenants.server)
    status, _items, _reply = link.ask("WIRE_BOX_CONNECT", W_ID=box.id, W_MODE=2, W_COLD=1, W_TIMEOUT=300)
    assert status == 0
    for gate in tenants.server.gates():
        os.kill(gate, signal.SIGCONT)
    assert box.run("ls /dev/shm")[1].strip() == "kept"


def test_a_fork_that_is_asked_for_again_is_made_once(taken: tuple[Tenants, Link]) -> None:
    """As a gate does whose warden died before it answered: the same ids, and the first try may have come to its end."""
    tenants, link = taken
    box = tenants.victim.create(timeout=300)
    proof = hashlib.sha256(bytes.fromhex(tenants.victim.key.removeprefix('e2b_'))).digest()
    stop(tenants.server)
    asked = {"W_ID": box.id, "W_REF": "iforkofthevictim0", "W_BUILD": str(uuid.uuid4()), "W_TIMEOUT": 60}
    first, items, _reply = link.ask("WIRE_BOX_FORK", **asked, W_PROOF=proof)
    assert (first, len(items)) == (0, 1)
    again, items, reply = link.ask("WIRE_BOX_FORK", **asked, W_PROOF=proof)
    assert (again, len(items)) == (0, 1), reply


def test_a_route_tells_no_token_and_no_variable(taken: tuple[Tenants, Link]) -> None:
    tenants, link = taken
    box = tenants.victim.create(timeout=300, network={"allowPublicTraffic": False}, envVars={"SECRET": "in-a-variable"})
    stop(tenants.server)
    status, _items, reply = link.ask("WIRE_BOX_GET", W_ID=box.id)
    assert status == 0
    told = b"".join(reply.values())
    assert box.token.encode() not in told
    assert box.made["trafficAccessToken"].encode() not in told
    assert b"in-a-variable" not in told


def test_every_question_on_a_crowded_link_is_answered(taken: tuple[Tenants, Link]) -> None:
    """Who reads slowly waits for itself: no answer to anybody's question is lost because another one's was long."""
    tenants, link = taken
    team, key = team_of(tenants, "victim"), tenants.victim.key or ""
    proof = hashlib.sha256(bytes.fromhex(key[4:])).digest()
    for _ in range(2):
        tenants.victim.create(timeout=300, metadata={"large": "x" * 60000})
    stop(tenants.server)
    left = [link.question("WIRE_BOX_LIST", W_TEAM=team, W_PROOF=proof) for _ in range(1000)]
    wanted = len(left)
    whole = items = errors = 0
    link.socket.setblocking(False)

    def send() -> None:
        while left:
            try:
                link.socket.send(left[-1])
            except BlockingIOError:
                return
            left.pop()

    for _ in range(30):  # nobody reads: the warden answers into its queue, as far as it takes questions
        send()
        time.sleep(0.1)  # what must not happen: that it takes more without an end
    while whole + errors < wanted and select.select([link.socket], [], [], 20)[0]:
        got, status, number = struct.unpack_from("<IiQ", link.socket.recv(1 << 20))
        items += got == TYPE["WIRE_ITEM"]
        whole += got == TYPE["WIRE_REPLY"] and number >= 1 << 40 and status == 0
        errors += got == TYPE["WIRE_REPLY"] and number >= 1 << 40 and status == -errno.ENOBUFS
        send()
    assert whole + errors == wanted, f"{wanted - whole - errors} of {wanted} answers were lost"
    assert items >= 2 * whole, f"{2 * whole - items} parts of answers were lost"


def memory_of(pid: int) -> bytes:
    found = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if rights[:2] != "rw" or line.endswith(("[vvar]", "[vsyscall]")):
                continue
            begin, end = (int(edge, 16) for edge in span.split("-"))
            try:
                memory.seek(begin)
                found.append(memory.read(end - begin))
            except (OSError, ValueError):
                continue
    return b"".join(found)


def test_a_gate_holds_no_secret_of_the_server(taken: tuple[Tenants, Link]) -> None:
    """Neither what tokens are made from, nor the administrator's token, nor tokens of boxes it has not been asked
    about."""
    tenants, _link = taken
    server = tenants.server
    box = tenants.victim.create(timeout=300)
    server.wire.call("GET", "/sandboxes")
    (old,) = server.gates()
    os.kill(old, signal.SIGKILL)  # a new one has never seen the box
    new = old
    for _ in range(400):
        gates = server.gates()
        if gates and gates[0] != old and Path(f"/proc/{gates[0]}/fd").exists():
            new = gates[0]
            try:
                if server.wire.call("GET", "/health").status == 200:
                    break
            except OSError:
                pass
    assert new != old
    assert server.wire.call("GET", "/sandboxes").status == 200
    assert box.id in server.wire.call("GET", "/sandboxes").text
    with sqlite3.connect(f"file:{server.data}/cloche.db?mode=ro", uri=True) as store:
        secret = store.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()[0]
    secret = secret if isinstance(secret, bytes) else secret.encode()
    assert len(secret) == 64
    held = memory_of(new)
    assert len(held) > 100000
    assert secret not in held
    assert b"the-administrators-own" not in held
    assert box.token.encode() not in held
    environment = Path(f"/proc/{new}/environ").read_bytes() + Path(f"/proc/{new}/cmdline").read_bytes()
    assert b"the-administrators-own" not in environment
    assert server.wire.call("GET", "/nodes", None, {"X-Admin-Token": "the-administrators-own"}).status == 200
