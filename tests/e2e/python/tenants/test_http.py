# SPDX-License-Identifier: Apache-2.0
"""What a client without a key, or a server inside a box, can do to the gates and to other clients."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.server import Server, binary, own_server
from support.tenants import Tenants, put_program, two_teams
from support.waiting import eventually
from support.wire import RawBox

ANSWERS = 8200  # ports inside the attacker's box
FILLS = 8300


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """Two teams on a server that speaks https too."""
    files = tmp_path_factory.mktemp("tls")
    subprocess.run([binary(), "tls", "init", "--dir", str(files)], check=True, capture_output=True, timeout=60)
    flags = ("--tls-listen", "127.0.0.1:0", "--tls-cert", str(files / "cert.pem"), "--tls-key", str(files / "key.pem"))
    with own_server(*flags) as made:
        yield two_teams(made)


@pytest.fixture(scope="module")
def attacker(web: Tenants) -> Iterator[RawBox]:
    box = web.attacker.create(timeout=600)
    yield box
    box.kill()


# ---- an HPACK bomb ----

BOMBER = r"""
import os, socket, ssl, struct, sys, threading, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])

def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body

def block(stream, first):
    value = b"a" * 4000
    size = len(value) - 127
    told = b"\x7f" + bytes([size & 127 | 128, size >> 7]) + value
    head = b"\x82\x87\x84\x01\x01a" + (b"\x40\x01x" + told if first else b"")
    head += b"\xbe" * (9 * 16384 - len(head))
    parts = [head[i:i + 16384] for i in range(0, len(head), 16384)]
    out = frame(1, 1, stream, parts[0])
    for i, part in enumerate(parts[1:], 1):
        out += frame(9, 4 if i == len(parts) - 1 else 0, stream, part)
    return out

def bomb(end):
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as link:
                    link.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
                    stream = 1
                    while time.monotonic() < end:
                        link.sendall(block(stream, stream == 1))
                        stream += 2
        except OSError:
            time.sleep(0.01)

end = time.monotonic() + seconds
threads = [threading.Thread(target=bomb, args=(end,)) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def connections_to(port: int) -> int:
    done = subprocess.run(["ss", "-Htn", "state", "established", f"dport = :{port}"], capture_output=True, check=True)
    return len(done.stdout.splitlines())


def latencies(web: Tenants, seconds: float) -> list[float]:
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert web.victim.call("GET", "/health").status == 200
        took.append(time.monotonic() - began)
        time.sleep(0.02)  # the pace of the questions
    return sorted(took)


def test_an_hpack_bomb_does_not_slow_others_down(web: Tenants) -> None:
    port = urlsplit(web.server.tls_url).port
    attack = subprocess.Popen([sys.executable, "-c", BOMBER, str(port), "8"])
    try:
        eventually(lambda: connections_to(port) > 0)
        took = latencies(web, 6)
    finally:
        attack.kill()
        attack.wait()
    print(f"health under attack: median {statistics.median(took) * 1000:.1f} ms, worst {took[-1] * 1000:.0f} ms")
    assert statistics.median(took) < 0.1
    assert took[-1] < 1


def test_a_bomb_ends_the_connection_before_it_is_decoded(web: Tenants) -> None:
    """GOAWAY with ENHANCE_YOUR_CALM, soon after the limit was passed."""
    spoken = BOMBER.split("def bomb")[0]
    port = urlsplit(web.server.tls_url).port
    code = spoken + (
        "link = context.wrap_socket(socket.create_connection(('127.0.0.1', port)), server_hostname='localhost')\n"
        "link.settimeout(20)\n"
        "link.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + frame(4, 0, 0) + block(1, True))\n"
        "got = b''\n"
        "while part := link.recv(65536): got += part\n"
        "kinds = []\n"
        "while got:\n"
        "    size = int.from_bytes(got[:3], 'big')\n"
        "    kinds.append((got[3], got[9:9 + size])); got = got[9 + size:]\n"
        "print([int.from_bytes(body[4:8], 'big') for kind, body in kinds if kind == 7])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(port), "0"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[11]", (done.stdout, done.stderr)


# ---- a server that breaks the rules ----

RAW_SERVER = r"""
import os, socket, sys, threading
answer = bytes.fromhex(sys.argv[2])
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))

def serve(link):
    head = b""
    while b"\r\n\r\n" not in head:
        part = link.recv(65536)
        if not part:
            return
        head += part
    if answer == b"flood":
        try:
            while True:
                link.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        except OSError:
            return
    link.sendall(answer)
    with open("/tmp/seen", "ab") as seen:
        while part := link.recv(65536):
            seen.write(part)
            seen.flush()

while True:
    link, _ = listener.accept()
    threading.Thread(target=serve, args=(link,), daemon=True).start()
"""


@contextlib.contextmanager
def raw_server(box: RawBox, answer: bytes) -> Iterator[int]:
    """A server in the box that gives this one answer to whatever comes."""
    raw_server.port += 1
    port = raw_server.port
    source = RAW_SERVER.replace("'", "'\\''")
    line = f"rm -f /tmp/seen; setsid python3 -c '{source}' {port} {answer.hex()} >/dev/null 2>&1 </dev/null & echo $!"
    code, pid, err = box.run(line)
    assert code == 0, err
    eventually(lambda: box.run(f"grep -q ':{port:04X} 00000000:0000 0A' /proc/net/tcp")[0] == 0)
    try:
        raw_server.stop = lambda: box.run(f"kill {pid.strip()}")
        yield port
    finally:
        box.run(f"kill {pid.strip()}")


raw_server.port = ANSWERS


class Kept:
    """A client that keeps its connection: one request after another on one socket."""

    def __init__(self, web: Tenants) -> None:
        self.link = web.server.wire.open(timeout=20)
        self.rest = b""

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{k}: {v}" for k, v in headers.items())]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.link.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return self.answer(method)

    def answer(self, method: str) -> tuple[int, bytes]:
        while b"\r\n\r\n" not in self.rest:
            part = self.link.recv(65536)
            if not part:
                raise ConnectionError("closed")
            self.rest += part
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        status = int(head.split()[1])
        if status in (101, 204, 304) or method == "HEAD":
            return status, b""
        if b"chunked" in head.lower():
            while b"0\r\n\r\n" not in self.rest:
                self.rest += self.link.recv(65536)
            body, self.rest = self.rest.split(b"0\r\n\r\n", 1)
            return status, body
        size = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(self.rest) < size:
            self.rest += self.link.recv(65536)
        body, self.rest = self.rest[:size], self.rest[size:]
        return status, body


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({}, SWITCH % b"echo"),
        ({}, b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ({"Connection": "Upgrade", "Upgrade": "websocket"}, SWITCH % b"echo"),
        ({"Connection": "Upgrade", "Upgrade": "websocket"}, b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ({"Upgrade": "echo"}, SWITCH % b"echo"),
        ({"Connection": "Upgrade", "Upgrade": "h2c"}, SWITCH % b"h2c"),
    ],
    ids=["unasked", "bare", "another", "unnamed", "without-connection", "h2c"],
)
def test_no_key_follows_an_unasked_101_into_a_box(web: Tenants, attacker: RawBox, asked, answer: bytes) -> None:
    with raw_server(attacker, answer) as port:
        client = Kept(web)
        assert client.ask("GET", "/", attacker.routing(port) | asked)[0] == 502
        status, body = client.ask("GET", "/sandboxes", {"X-API-Key": web.victim.key})
        assert (status, body[:1]) == (200, b"[")
        client.link.close()
        seen = attacker.run("cat /tmp/seen 2>/dev/null")[1]
        assert web.victim.key not in seen


def test_a_101_to_a_request_with_a_body_is_refused(web: Tenants, attacker: RawBox) -> None:
    with raw_server(attacker, SWITCH % b"echo") as port:
        client = Kept(web)
        asked = attacker.routing(port) | {"Connection": "Upgrade", "Upgrade": "echo"}
        assert client.ask("POST", "/", asked, b"some")[0] == 502


def test_after_a_tunnel_the_connection_ends(web: Tenants, attacker: RawBox) -> None:
    with raw_server(attacker, SWITCH % b"echo") as port:
        client = Kept(web)
        asked = attacker.routing(port) | {"Connection": "Upgrade", "Upgrade": "echo"}
        assert client.ask("GET", "/", asked)[0] == 101
        raw_server.stop()
        assert client.link.recv(1) == b""


EVIL = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n"evil"'


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + EVIL),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok" + EVIL),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok" + EVIL),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\nok" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nX: a\r\n\rContent-Length: 2\r\n\r\nok" + EVIL),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n" + EVIL),
    ],
    ids=["long", "chunked", "204", "304", "head", "1xx-after", "both", "lengths", "cr", "coding"],
)
def test_a_boxs_bytes_are_never_the_answer_to_another_request(web: Tenants, attacker: RawBox, method, answer) -> None:
    with raw_server(attacker, answer) as port:
        client = Kept(web)
        status, body = client.ask(method, "/", attacker.routing(port))
        assert b"evil" not in body
        status, body = client.ask("GET", "/sandboxes", {"X-API-Key": web.victim.key})
        assert (status, body[:1]) == (200, b"[")


def test_an_early_answer_leaves_no_half_request_behind(web: Tenants, attacker: RawBox) -> None:
    """The rest of a body that the box did not wait for is not read as the next request."""
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    with raw_server(attacker, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as port:
        client = Kept(web)
        lines = {"Content-Length": str(1000 + len(smuggled))} | attacker.routing(port)
        assert client.ask("POST", "/", lines)[0] == 200
        client.link.sendall(b"x" * 1000 + smuggled)
        status, body = client.ask("GET", "/sandboxes", {"X-API-Key": web.victim.key})
        assert (status, body[:1]) == (200, b"[")


def test_interim_answers_have_an_end(web: Tenants, attacker: RawBox) -> None:
    with raw_server(attacker, b"flood") as port:
        began = time.monotonic()
        assert web.attacker.call("GET", "/", headers=attacker.routing(port), timeout=20).status == 502
        assert time.monotonic() - began < 10


# ---- clients that hold what they were given ----


@pytest.mark.parametrize(
    "path",
    ["/volumecontent/a/b", "/volumecontent/a/b?path=x", "/sandboxes", "/v3/templates", "/uploads/a/b", "/health"],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_without_a_key_no_body_is_waited_for(web: Tenants, method: str, path: str) -> None:
    """The answer comes at the head, and the connection does not stay for a body that never comes."""
    with web.server.wire.open(timeout=40) as link:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
        link.sendall(head.encode() + b"x")
        began = time.monotonic()
        got = link.recv(65536)
        assert got.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), got
        assert time.monotonic() - began < 5
        while link.recv(65536):
            pass
        assert time.monotonic() - began < 15


def socket_memory(words: list[str]) -> int:
    """Bytes that the kernel holds for sockets, those queued to be sent and those that came."""
    told = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.findall(r"skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+)", told)
    return sum(int(r) + int(f) + int(w) for r, f, w in found)


def gate_memory(server: Server, inside: int, port: int) -> dict[str, int]:
    """What the gates hold: towards clients, towards the box of that process, and in their own memory. What the box's
    own sockets
    hold is the box's memory."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in server.gates()]
    return {
        "clients": socket_memory(["ss", "-tmnH", f"sport = :{urlsplit(server.url).port}"]),
        "box": socket_memory(["nsenter", "-t", str(inside), "-n", "ss", "-tmnH", f"dport = :{port}"]),
        "gates": sum(pages) * 4096,
    }


def pid_of(name: str) -> int:
    """On the host."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                return int(entry.name)
    raise AssertionError(f"no process {name}")


CROWD = 400


def test_clients_that_do_not_read_hold_little(web: Tenants, attacker: RawBox) -> None:
    program = put_program(attacker, "http_fill")
    code, pid, err = attacker.run(f"setsid {program} {FILLS} >/dev/null 2>&1 </dev/null & echo $!", user="root")
    assert code == 0, err
    eventually(lambda: attacker.run(f"grep -q ':{FILLS:04X} 00000000:0000 0A' /proc/net/tcp")[0] == 0)
    asked = "".join(f"{k}: {v}\r\n" for k, v in attacker.routing(FILLS).items())
    inside = pid_of("http_fill")
    before = sum(gate_memory(web.server, inside, FILLS).values())
    links = []
    try:
        for _ in range(CROWD):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(web.victim.address)
            link.sendall(f"GET / HTTP/1.1\r\nHost: a\r\n{asked}\r\n".encode())
            links.append(link)
        held, still = 0, 0
        while still < 20:  # until it grows no more for two seconds
            time.sleep(0.1)  # between looks
            parts = gate_memory(web.server, inside, FILLS)
            now = sum(parts.values()) - before
            still = still + 1 if now <= held * 1.02 else 0
            held = max(held, now)
        each = held / CROWD
        print(f"{CROWD} clients that do not read: {held >> 20} MiB, {each / 1024:.0f} KiB each; {parts}")
        assert each < 1200 << 10
        assert web.victim.call("GET", "/health").status == 200
    finally:
        for link in links:
            link.close()
        attacker.run(f"kill {pid.strip()}", user="root")


@pytest.fixture
def small() -> Iterator[Tenants]:
    """Two teams, each of which may have four requests open in the one gate, three of them into boxes."""
    with own_server(
        "--pool", "0", "--gates", "1", "--team-connections-max", "4", "--address-connections-max", "20"
    ) as made:
        yield two_teams(made)


def test_one_team_does_not_take_all_connections(small: Tenants) -> None:
    mine, other = small.attacker.create(), small.victim.create()
    program = put_program(mine, "http_fill")
    assert mine.run(f"setsid {program} {FILLS} >/dev/null 2>&1 </dev/null &", user="root")[0] == 0
    eventually(lambda: mine.run(f"grep -q ':{FILLS:04X} 00000000:0000 0A' /proc/net/tcp")[0] == 0)
    asked = "".join(f"{k}: {v}\r\n" for k, v in mine.routing(FILLS).items())
    links = [small.attacker.open() for _ in range(3)]
    for link in links:
        link.sendall(f"GET / HTTP/1.1\r\nHost: a\r\n{asked}\r\n".encode())
        assert link.recv(15) == b"HTTP/1.1 200 OK"
    refused = mine.port(FILLS)
    assert (refused.status, refused.json()["connectionLimit"]) == (429, 3)
    assert mine.agent("GET", "/health").status == 429
    assert (
        small.attacker.call("GET", "/sandboxes").status == 200
    )  # strangers may fill a public port, and not lock a team out of its API
    assert small.victim.call("GET", "/sandboxes").status == 200
    assert other.agent("GET", "/health").status == 204
    links.pop().close()
    eventually(lambda: mine.agent("GET", "/health").status == 204)
    for link in links:
        link.close()


@pytest.fixture
def tight() -> Iterator[Tenants]:
    """A gate that keeps 16 MiB for those who do not go on."""
    with own_server("--pool", "0", "--gates", "1", "--buffers-mb", "16") as made:
        yield two_teams(made)


def test_bodies_that_never_end_count_as_waiting(tight: Tenants) -> None:
    part = b"x" * (7 << 20)
    links = []
    for _ in range(4):
        link = tight.attacker.open()
        head = (
            f"POST /sandboxes HTTP/1.1\r\nHost: a\r\n"
            f"X-API-Key: {tight.attacker.key}\r\nContent-Length: {8 << 20}\r\n\r\n"
        )
        link.sendall(head.encode() + part)
        links.append(link)
    over: list[socket.socket] = []

    def cut() -> bool:
        assert tight.victim.call("GET", "/sandboxes").status == 200
        over[:] = [link for link in links if select.select([link], [], [], 0)[0]]
        return len(over) >= 2

    eventually(cut, 20)
    for link in links:
        link.close()


def test_one_address_does_not_fill_a_gate_without_a_key(small: Tenants) -> None:
    known = small.victim.connect()
    known.request("GET", "/sandboxes", headers={"X-API-Key": small.victim.key})
    assert known.getresponse().read() == b"[]"
    strangers = [small.attacker.open() for _ in range(20)]
    with small.attacker.open() as over:
        assert over.recv(65536).startswith(b"HTTP/1.1 503 ")
    known.request("GET", "/sandboxes", headers={"X-API-Key": small.victim.key})
    assert known.getresponse().status == 200
    for link in strangers:
        link.close()
    eventually(lambda: small.victim.call("GET", "/health").status == 200)
