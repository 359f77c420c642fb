# SPDX-License-Identifier: Apache-2.0
"""A small world for a server that may go out, from which no packet can leave.

Two network namespaces without a name, joined by one veth: one plays the host,
with the server in it; a child process in the other plays everything else, with
public, private and metadata addresses. Both are gone with the processes in them,
however those end. The test stays outside, where its clients' threads are, and
speaks to the server through a relay; what must be seen from the host itself is
done inside().
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import e2b

from support.server import Server

HOST = "203.0.113.1"
GATEWAY = "203.0.113.10"
RESOLVER = "203.0.113.53"
PUBLIC = [GATEWAY, *(f"198.51.100.{n}" for n in range(1, 9))]

# For python3 in a box, with a name server and a name as arguments: `answer` is what the server sent.
DNS_QUESTION = """
import socket, struct, sys
server, name = sys.argv[1:]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(3)
labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
head, tail = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0), struct.pack(">BHH", 0, 1, 1)
u.sendto(head + labels + tail, (server, 53))
answer = u.recv(512)
"""
INSIDE = "192.168.77.7"
NEVER = [INSIDE, "10.99.0.9", "172.16.5.5", "100.64.1.1", "169.254.169.254", "192.0.0.8"]
NAMES = {
    "example.com": "198.51.100.1",
    "www.example.com": "198.51.100.2",
    "deep.www.example.com": "198.51.100.3",
    "other.example.net": "198.51.100.4",
    "inside.example.net": INSIDE,
}
OTHERWISE = PUBLIC[5]  # a name server that says another address of www.example.com
SERVICE = 81  # of the host itself, on every address it has
API = 3000  # of the server there
OWN_ADDRESS = f"""
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.connect(("{GATEWAY}", 9))
print(u.getsockname()[0])
"""
LASTING = f"""
import os, socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(3)
u.connect(("{PUBLIC[-1]}", 7))
def ask():
    try:
        u.send(b"again")
        return u.recv(9).decode()
    except OSError:
        return "cut"
print(ask(), flush=True)
while not os.path.exists("/tmp/go-on"):
    time.sleep(0.05)
print(ask(), flush=True)
"""
CLONE_NEWNET = 0x40000000


def libc_call(name: str, *args: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def ip(*words: str, inside: int | None = None) -> str:
    enter = ["nsenter", "-t", str(inside), "-n"] if inside else []
    done = subprocess.run([*enter, "ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def links(inside: int | None = None) -> set[str]:
    return {link["ifname"] for link in json.loads(ip("-j", "link", inside=inside))}


def tables() -> str:
    done = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fetch(address: str, port: int = 80) -> str:
    """What a plain program of the host gets from there; empty when it is not let in."""
    try:
        with socket.create_connection((address, port), timeout=3) as link:
            link.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: link.recv(4096), b"")).decode()
    except OSError:
        return ""


class Relay:
    """127.0.0.1:port out here -> 127.0.0.1:API in the namespace of the thread that starts it."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self.thread.start()

    def close(self) -> None:
        if self.thread.ident:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
        self.listener.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self._connect, sock=self.listener))
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0.1))
        self.loop.close()

    async def _connect(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, out = await asyncio.open_connection("127.0.0.1", API)
        except OSError:
            back.transport.abort()
            return
        await asyncio.gather(self._pass_on(near, out), self._pass_on(far, back))

    @staticmethod
    async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()


class World:
    def __init__(self) -> None:
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.host: int | None = None
        self.service: socket.socket | None = None
        self.relay = Relay()
        self.child = subprocess.Popen(
            ["unshare", "--net", sys.executable, str(Path(__file__).with_name("world_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and what it starts, is on the host for a while."""
        assert self.host
        libc_call("setns", self.host, CLONE_NEWNET)
        try:
            yield
        finally:
            libc_call("setns", self.home, CLONE_NEWNET)

    def _build(self) -> None:
        assert self.child.stdin
        assert self.child.stdout
        assert self.child.stdout.readline() == "moved\n"
        libc_call("unshare", CLONE_NEWNET)
        try:
            self.host = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            self._join(self.child.pid)
            told = {"addresses": [*PUBLIC, *NEVER, RESOLVER], "names": NAMES}
            told["otherwise"] = {OTHERWISE: {"www.example.com": PUBLIC[7]}}
            self.child.stdin.write(json.dumps(told) + "\n")
            self.child.stdin.flush()
            assert self.child.stdout.readline() == "ready\n"
            self._serve()
            self.relay.start()
        finally:
            libc_call("setns", self.home, CLONE_NEWNET)

    def _join(self, pid: int) -> None:
        ip("link", "set", "lo", "up")
        ip("link", "add", "out", "type", "veth", "peer", "name", "near", "netns", str(pid))
        ip("addr", "add", f"{HOST}/24", "dev", "out")
        ip("link", "set", "out", "up")
        ip("link", "set", "lo", "up", inside=pid)
        ip("addr", "add", f"{GATEWAY}/24", "dev", "near", inside=pid)
        for address in [*PUBLIC[1:], *NEVER, RESOLVER]:
            ip("addr", "add", f"{address}/32", "dev", "near", inside=pid)
        ip("link", "set", "near", "up", inside=pid)
        ip("route", "add", "10.128.0.0/9", "via", HOST, inside=pid)
        ip("route", "add", "default", "via", GATEWAY)
        # Nothing but the one link between the two: no packet has a way further.
        assert links() == {"lo", "out"}
        assert links(self.child.pid) == {"lo", "near"}

    def _serve(self) -> None:
        """A program of the host's own that listens everywhere."""
        self.service = socket.create_server(
            ("::", SERVICE), family=socket.AF_INET6, dualstack_ipv6=True
        )
        threading.Thread(target=self._answer, args=[self.service], daemon=True).start()

    @staticmethod
    def _answer(service: socket.socket) -> None:
        while True:
            try:
                link, _ = service.accept()
                with link:
                    link.settimeout(2)
                    link.recv(4096)
                    link.sendall(b"HTTP/1.0 200 OK\r\n\r\nthe host")
            except OSError:
                if service.fileno() < 0:
                    return

    def rename(self, names: dict[str, str | list[str]]) -> None:
        """From now on these names have these addresses; of several each question gets the next one."""
        assert self.child.stdin
        assert self.child.stdout
        self.child.stdin.write(json.dumps(names) + "\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "changed\n"

    def fetch(self, address: str, port: int) -> str:
        """The same as fetch(), from the world's side."""
        line = ["curl", "-s", "-m", "3", f"http://{address}:{port}/"]
        line = ["nsenter", "-t", str(self.child.pid), "-n", *line]
        return subprocess.run(line, capture_output=True, text=True, check=False).stdout

    def close(self) -> None:
        self.relay.close()
        if self.service:
            self.service.shutdown(socket.SHUT_RDWR)
            self.service.close()
        self.child.stdin and self.child.stdin.close()  # the child ends with it
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()
        for held in (self.home, self.host):
            if held is not None:
                os.close(held)


class Abroad(Server):
    """A server in the world's host, on every address there, its boxes allowed out."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def start(self, *extra: str, exit_with: int | None = None) -> dict[str, Any]:
        outside = ["--listen", f"0.0.0.0:{API}", "--internet", "1", "--resolver", RESOLVER]
        with self.world.inside():
            told = super().start(*outside, *extra, exit_with=exit_with)
        self.flags = extra
        self.url = f"http://127.0.0.1:{self.world.relay.port}"
        return told

    def resolve_there(self) -> None:
        """From its next start on the server itself asks the world's name server: it sees another resolv.conf."""
        told = self.home / "resolv.conf"
        told.write_text(f"nameserver {RESOLVER}\n")
        script = f'mount --bind "{told}" /etc/resolv.conf && exec "$@"'
        self.prefix = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, "sh"]

    @property
    def access(self) -> dict[str, Any]:
        return {"api_key": self.key, "api_url": self.url, "sandbox_url": self.url}

    @contextmanager
    def box(self, **options: Any) -> Iterator[e2b.Sandbox]:
        made = e2b.Sandbox.create("base", timeout=120, **self.access, **options)
        try:
            yield made
        finally:
            made.kill()


def run(box: e2b.Sandbox, line: str) -> tuple[int, str]:
    try:
        done = box.commands.run(line, timeout=30)
    except e2b.CommandExitException as error:
        return error.exit_code, error.stdout
    return done.exit_code, done.stdout


def reached(box: e2b.Sandbox, *places: str) -> set[str]:
    """Which of these the box gets an answer from, all asked at once with five seconds for it."""
    asked = " ".join(f"'{place}'" for place in places)
    ask = 'curl -sg -o /dev/null -m 5 "http://$p/" && echo "$p"'
    line = f"for p in {asked}; do ({ask}) & done; wait"
    code, out = run(box, line)
    assert code == 0, out
    return set(out.split())


def devices(box: e2b.Sandbox) -> set[str]:
    lines = run(box, "cat /proc/net/dev")[1].splitlines()[2:]
    return {line.split(":")[0].strip() for line in lines}


def address(box: e2b.Sandbox) -> str:
    """The box's own, as it sees it."""
    return run(box, f"python3 -c '{OWN_ADDRESS}'")[1].strip()


def start_lasting(box: e2b.Sandbox) -> e2b.CommandHandle:
    """A program that exchanges datagrams with the last public address, and waits."""
    box.files.write("/tmp/lasting.py", LASTING)
    handle = box.commands.run("python3 /tmp/lasting.py > /tmp/said", background=True)
    run(box, "timeout 10 sh -c 'until grep -q . /tmp/said; do sleep 0.05; done'")
    return handle


def finish_lasting(box: e2b.Sandbox, handle: e2b.CommandHandle) -> str:
    """Let it do so once more on the same connection, and tell what it got both times."""
    box.files.write("/tmp/go-on", "")
    run(box, f"timeout 10 sh -c 'while kill -0 {handle.pid} 2>/dev/null; do sleep 0.05; done'")
    return box.files.read("/tmp/said")
