# SPDX-License-Identifier: Apache-2.0
"""The egress gateway alone, between boxes and an internet that are network namespaces of this test.

The lab plays the supervisor and the warden: it starts the role, hands it the listener and packed policies, and hears
what it answers. Traffic is turned to the gateway by the same kind of rule that src/jail/net writes."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
PORT = 4980
GATEWAY = "10.213.0.1"
BOXES = {"one": "10.213.0.16", "two": "10.213.0.17", "plain": "10.213.0.18"}
API, H2, FALSE, WS, SLOW, PROXY = (f"198.51.100.{n}" for n in (1, 2, 3, 4, 5, 8))
SET, REMOVE, SYNC, TOKEN, APPLIED, ASK, RECORD, LISTEN = range(1, 9)


def run(*words: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
    return done


def number(v: int) -> bytes:
    return struct.pack("=I", v)


def text(v: str | bytes) -> bytes:
    raw = v.encode() if isinstance(v, str) else v
    return number(len(raw)) + raw


def address(v: str) -> int:
    return int.from_bytes(socket.inet_aton(v), "big")


def pieces(value: str) -> bytes:
    """As egress_value_read takes a value apart."""
    out, n = b"", 0
    while value:
        if value.startswith("${e2b.secrets."):
            name, value = value[14:].split("}", 1)
            out += number(2) + text(name)
        elif value.startswith("${e2b.identity.tokens."):
            name, value = value[22:].split("}", 1)
            out += number(3) + text(name)
        else:
            at = value.find("${")
            at = len(value) if at < 0 else at
            out += number(1) + text(value[:at])
            value = value[at:]
        n += 1
    return number(n) + out


class Policy:
    def __init__(self, box: str, **parts: Any) -> None:
        self.box, self.parts = box, parts

    def pack(self, lab: Lab) -> bytes:
        p = self.parts
        hosts: dict[str, dict[str, str]] = p.get("hosts", {})
        secrets: dict[str, str | None] = p.get("secrets", {})
        proxy: dict[str, Any] = p.get("proxy", {})
        out = number(0x31504743) + text(self.box) + text(p.get("team", "team")) + number(p.get("log", 2))
        out += number(len(hosts))
        for pattern, headers in hosts.items():
            out += text(pattern) + number(len(headers))
            for name, value in headers.items():
                out += text(name) + pieces(value)
        out += number(len(secrets))
        for name, secret in secrets.items():
            out += text(name) + number(secret is None) + text(secret or "")
        out += number(proxy.get("kind", 0)) + text(proxy.get("host", "")) + number(proxy.get("port", 0))
        out += text(proxy.get("user", "")) + text(proxy.get("password", "")) + number(proxy.get("tls", 0))
        out += text(proxy.get("server_name", "")) + text(proxy.get("ca", ""))
        out += text((lab.dir / "boxca.pem").read_bytes()) + text((lab.dir / "boxca.key").read_bytes())
        out += number(p.get("restricted", 0)) + text(p.get("allow_names", ""))
        nets: list[tuple[str, int]] = p.get("allow_nets", [])
        out += number(len(nets))
        for prefix, bits in nets:
            out += number(address(prefix)) + number(bits)
        return out


class Lab:
    def __init__(self) -> None:
        self.dir = Path(tempfile.mkdtemp(prefix="cloche-egress-"))
        self.holders: dict[str, subprocess.Popen[bytes]] = {}
        self.generation = 0
        self.gateway: subprocess.Popen[bytes] | None = None
        self.records: list[dict[str, Any]] = []
        self.asks: list[str] = []
        self.tokens: dict[str, tuple[str, int]] = {}
        self.policies: dict[str, Policy] = {}
        self.world: subprocess.Popen[bytes] | None = None
        self.listener: socket.socket | None = None
        try:
            self.make_certificates()
            self.make_network()
            self.start_world()
            self.listener = self.make_listener()
            self.start()
        except BaseException:
            self.close()
            raise

    def start_world(self) -> None:
        self.world = subprocess.Popen(
            [*self.enter("net"), sys.executable, str(HERE / "egress_world.py"), str(self.dir)],
            stdout=subprocess.PIPE,
        )
        assert self.world.stdout
        assert self.world.stdout.readline() == b"ready\n"

    # certificates

    def make_certificates(self) -> None:
        d = self.dir
        for name in ("ca", "otherca", "boxca"):
            run(
                *["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"],
                *["-keyout", f"{d}/{name}.key", "-out", f"{d}/{name}.pem", "-days", "2", "-subj", f"/CN={name}"],
                *["-addext", "keyUsage=critical,keyCertSign,cRLSign"],
            )
        leaves = {
            "api": ("ca", "DNS:api.example.com,DNS:*.example.com,DNS:plain.example.net"),
            "h2": ("ca", "DNS:h2.example.com"),
            "ws": ("ca", "DNS:ws.example.com"),
            "false": ("otherca", "DNS:api.example.com"),
            "proxy": ("otherca", "DNS:proxy.inner"),
        }
        for name, (ca, names) in leaves.items():
            run(
                *["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"],
                *["-keyout", f"{d}/{name}.key", "-out", f"{d}/{name}.csr", "-subj", f"/CN={name}"],
            )
            (d / "ext").write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
            run(
                *["openssl", "x509", "-req", "-in", f"{d}/{name}.csr", "-CA", f"{d}/{ca}.pem", "-CAkey"],
                *[f"{d}/{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", f"{d}/ext"],
                *["-out", f"{d}/{name}.pem"],
            )
        (d / "both.pem").write_bytes((d / "ca.pem").read_bytes() + (d / "boxca.pem").read_bytes())
        d.chmod(0o755)

    # network

    def hold(self, name: str) -> int:
        p = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self.holders[name] = p
        mine = os.readlink("/proc/self/ns/net")
        for _ in range(200):
            if os.readlink(f"/proc/{p.pid}/ns/net") != mine:
                return p.pid
            time.sleep(0.01)
        raise AssertionError("no namespace")

    def enter(self, name: str) -> list[str]:
        return ["nsenter", "-t", str(self.holders[name].pid), "-n"]

    def ip(self, where: str, words: str) -> None:
        run(*self.enter(where), "ip", *words.split())

    def make_network(self) -> None:
        self.hold("host")
        net = self.hold("net")
        self.ip("host", f"link add out type veth peer name world netns {net}")
        for where, words in (
            ("host", "link set lo up"),
            ("host", "addr add 203.0.113.1/24 dev out"),
            ("host", "link set out up"),
            ("net", "link set lo up"),
            ("net", "addr add 203.0.113.10/24 dev world"),
            ("net", "link set world up"),
            ("host", "route add default via 203.0.113.10"),
        ):
            self.ip(where, words)
        for n in range(1, 9):
            self.ip("net", f"addr add 198.51.100.{n}/32 dev lo")
        for n, (name, box) in enumerate(BOXES.items()):
            self.hold(name)
            self.ip("host", f"link add clab00v{n} type veth peer name eth0 netns {self.holders[name].pid}")
            self.ip("host", f"addr add {GATEWAY}/32 dev clab00v{n}")
            self.ip("host", f"link set clab00v{n} up")
            self.ip("host", f"route add {box}/32 dev clab00v{n}")
            self.ip(name, f"addr add {box}/32 dev eth0")
            self.ip(name, "link set eth0 up")
            self.ip(name, "link set lo up")
            self.ip(name, f"route add default via {GATEWAY} dev eth0 onlink")
        run(*self.enter("host"), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        rules = f"""table inet lab {{
          chain pre {{ type nat hook prerouting priority dstnat;
            iifname "clab*" ip saddr {{ {BOXES["one"]}, {BOXES["two"]} }} meta l4proto tcp ip daddr != {GATEWAY} \
              dnat ip to {GATEWAY}:{PORT}
          }}
          chain post {{ type nat hook postrouting priority srcnat; ip saddr 10.213.0.0/16 oifname "out" masquerade; }}
        }}"""
        run(*self.enter("host"), "nft", "-f", "-", input=rules)

    def make_listener(self) -> socket.socket:
        """Made in the host's namespace by a child, which hands it over."""
        near, far = socket.socketpair()
        code = (
            "import socket,array,os\n"
            "s=socket.socket(); s.setsockopt(socket.SOL_IP,15,1); s.setsockopt(1,socket.SO_REUSEPORT,1)\n"
            f"s.bind(('{GATEWAY}',{PORT})); s.listen(4096)\n"
            f"c=socket.socket(fileno={far.fileno()})\n"
            "c.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[s.fileno()]))])\n"
        )
        run(*self.enter("host"), sys.executable, "-c", code, pass_fds=(far.fileno(),))
        _, fds, _, _ = socket.recv_fds(near, 1, 1)
        near.close()
        far.close()
        return socket.socket(fileno=fds[0])

    # the role

    def start(self, **settings: Any) -> None:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {**os.environ, "CLOCHE_EGRESS_ROOTS": str(self.dir / "ca.pem")}
        env.update({f"CLOCHE_{k.upper()}": str(v) for k, v in settings.items()})
        binary = os.environ.get("CLOCHE_BIN", str(ROOT / "build/cloche"))
        self.gateway = subprocess.Popen(
            [*self.enter("host"), binary, "serve", "--role", "egress"],
            preexec_fn=lambda: os.dup2(theirs.fileno(), 3) if theirs.fileno() != 3 else None,
            pass_fds=(3,),
            env=env,
        )
        theirs.close()
        control.settimeout(10)
        self.control = control
        word = control.recv(700)
        assert word == b"R", word
        self.link_up()

    def link_up(self) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link.settimeout(10)
        socket.send_fds(self.control, [b"L"], [theirs.fileno()])
        theirs.close()
        assert self.listener
        self.send(LISTEN, b"", self.listener.fileno())
        for box in list(self.policies):
            self.put(box, self.policies[box])
        self.send(SYNC, b"")

    def kill(self) -> None:
        assert self.gateway
        self.gateway.kill()
        self.gateway.wait()

    def restart(self, **settings: Any) -> None:
        self.kill()
        self.start(**settings)

    def close(self) -> None:
        if self.gateway:
            self.kill()
        if self.world:
            self.world.kill()
            self.world.wait()
        for p in self.holders.values():
            p.kill()
            p.wait()
        if self.listener:
            self.listener.close()
        shutil.rmtree(self.dir)

    # packets

    def send(self, kind: int, body: bytes, fd: int | None = None) -> None:
        packet = struct.pack("=II", kind, len(body)) + body
        if fd is None:
            self.link.send(packet)
        else:
            socket.send_fds(self.link, [packet], [fd])

    def put(self, box: str, policy: Policy, status: int = 0) -> None:
        self.generation += 1
        packed = policy.pack(self)
        fd = os.memfd_create("policy")
        os.write(fd, packed)
        body = struct.pack("=QII64s", self.generation, address(BOXES[box]), len(packed), policy.box.encode())
        self.send(SET, body, fd)
        os.close(fd)
        got, _ = self.wait_for(APPLIED)
        generation, _, answered = struct.unpack("=QIi", got[:16])
        assert (generation, answered) == (self.generation, status), got[16:]
        self.policies[box] = policy

    def set(self, box: str, name: str | None = None, **parts: Any) -> None:
        self.put(box, Policy(name or f"i{box}", **parts))

    def remove(self, box: str) -> None:
        self.generation += 1
        body = struct.pack("=QII64s", self.generation, address(BOXES[box]), 0, b"")
        self.send(REMOVE, body)
        self.wait_for(APPLIED)
        self.policies.pop(box, None)

    def wait_for(self, wanted: int) -> tuple[bytes, int]:
        while True:
            kind, body = self.receive()
            if kind == wanted:
                return body, kind

    def receive(self) -> tuple[int, bytes]:
        packet = self.link.recv(65536)
        assert packet, "the gateway closed the link"
        kind, _ = struct.unpack("=II", packet[:8])
        body = packet[8:]
        if kind == RECORD:
            self.note(body)
        if kind == ASK:
            number_, _, _, _, name = struct.unpack("=QII64s160s", body)
            word = name.rstrip(b"\0").decode()
            self.asks.append(word)
            token, good = self.tokens.get(word, ("", 0))
            head = struct.pack("=QiI", number_, 0 if token else -2, good)
            self.send(TOKEN, head + token.encode())
        return kind, body

    def note(self, body: bytes) -> None:
        fields = struct.unpack("=qQQIIHHHHHHHH64s", body[:112])
        texts, at = [], 112
        for n in fields[9:13]:
            texts.append(body[at : at + n].decode())
            at += n
        keys = ("wall", "in", "out", "box", "to", "port", "verdict", "status", "proxied")
        record = dict(zip(keys, fields, strict=False))
        record.update(zip(("name", "rule", "method", "path"), texts, strict=True))
        self.records.append(record)

    def pump(self, seconds: float = 0.0) -> None:
        """What the gateway says is heard and answered, for so long."""
        until = time.monotonic() + seconds
        while select.select([self.link], [], [], max(0.0, until - time.monotonic()))[0]:
            self.receive()

    # clients

    def client(self, box: str, *words: str, wait: float = 30, check: bool = True) -> str:
        """A program in a box; packets of the gateway are answered while it runs."""
        p = subprocess.Popen([*self.enter(box), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert p.stdout
        out, until = b"", time.monotonic() + wait
        os.set_blocking(p.stdout.fileno(), False)
        while True:
            watched: list[Any] = [p.stdout, self.link]
            ready, _, _ = select.select(watched, [], [], 0.2)
            if self.link in ready:
                self.receive()
            if p.stdout in ready:
                part = p.stdout.read()
                if part == b"":
                    break
                out += part or b""
            if time.monotonic() > until:
                p.kill()
                p.wait()
                raise AssertionError(f"{words} took longer than {wait} s: {out[-500:]!r}")
        code = p.wait()
        assert not check or code == 0, (code, out[-2000:])
        return out.decode(errors="replace")

    @contextmanager
    def running(self, box: str, *words: str) -> Iterator[str]:
        """A program in a box that says one line and goes on until its input ends."""
        p = subprocess.Popen([*self.enter(box), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert p.stdin
        assert p.stdout
        try:
            yield p.stdout.readline().decode()
        finally:
            p.kill()
            p.wait()

    def curl(self, box: str, url: str, *more: str, at: str = API, wait: float = 30, check: bool = True) -> str:
        host = url.split("/")[2]
        name, _, port = host.partition(":")
        port = port or ("443" if url.startswith("https") else "80")
        common = ["curl", "-sS", "--max-time", str(wait), "--cacert", str(self.dir / "both.pem")]
        return self.client(box, *common, "--resolve", f"{name}:{port}:{at}", *more, url, wait=wait + 5, check=check)

    def ask(self, box: str, url: str, *more: str, at: str = API) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.curl(box, url, *more, at=at))
        told["fields"] = {k.lower(): v for k, v in told["headers"]}
        return told

    def proxy_saw(self) -> list[dict[str, Any]]:
        code = (
            f"import socket\ns = socket.create_connection(('{PROXY}', 99))\n"
            "print(b''.join(iter(lambda: s.recv(9999), b'')).decode())"
        )
        saw: list[dict[str, Any]] = json.loads(run(*self.enter("net"), sys.executable, "-c", code).stdout)
        return saw
