# SPDX-License-Identifier: Apache-2.0
"""egress.py BUILD OUT: the plain way out of a box and the way through the egress gateway; samples into OUT (JSON).

The plain way: a box without rules, with network_log off, names and full, beside a bare namespace on a veth of its own
with nothing but masquerading, in turns. The gateway: a rule's host through it, and the same host without it. The world
is network namespaces of the tests (tests/e2e/python/support); no packet leaves the machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e/python"))

from support.egress_lab import WS, Lab  # noqa: E402
from support.server import own_server  # noqa: E402
from support.world import PUBLIC, Abroad, World  # noqa: E402

Samples = dict[str, list[float]]
PORT, TURNS, CONNECTS, BYTES = 5001, 3, 400, 1 << 30
BARE, GATE = "10.250.7.2", "10.250.7.1"

# One thread per connection: a byte says what is wanted.
SINK = f"""
import socket, threading
block = bytes(1 << 20)
def one(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    left = {BYTES} if s.recv(1) == b"s" else 0
    while left > 0:
        left -= s.send(block[:left])
    s.close()
l = socket.create_server(("{PUBLIC[1]}", {PORT}), backlog=1024)
print("listens", flush=True)
while True:
    threading.Thread(target=one, args=(l.accept()[0],), daemon=True).start()
"""

CLIENT = f"""
import json, socket, time
place, took, buffer = ("{PUBLIC[1]}", {PORT}), [], bytearray(1 << 20)
for _ in range({CONNECTS}):
    at = time.perf_counter()
    s = socket.create_connection(place)
    took.append((time.perf_counter() - at) * 1000)
    s.close()
s = socket.create_connection(place)
at, got = time.perf_counter(), 0
s.sendall(b"s")
while n := s.recv_into(buffer):
    got += n
assert got == {BYTES}, got
print(json.dumps([sorted(took)[len(took) // 2], got / 1e9 / (time.perf_counter() - at)]))
"""


@contextmanager
def started(*words: str) -> Iterator[None]:
    """A server that says a line when it listens."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout
            assert child.stdout.readline() == "listens\n"
            yield
        finally:
            child.kill()


def ip(words: str, *enter: str) -> None:
    subprocess.run([*enter, "ip", *words.split()], check=True)


@contextmanager
def bare(world: World) -> Iterator[list[str]]:
    """Words that enter a namespace on a veth of the world's host, with masquerading and nothing else."""
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
    enter = ["nsenter", "-t", str(holder.pid), "-n"]
    try:
        assert holder.stdout
        holder.stdout.readline()
        with world.inside():
            ip(f"link add bare type veth peer name eth0 netns {holder.pid}")
            ip(f"addr add {GATE}/30 dev bare")
            ip("link set bare up")
            chain = "type nat hook postrouting priority srcnat; oifname out masquerade;"
            subprocess.run(["nft", f"table ip bare {{ chain out {{ {chain} }}; }}"], check=True)
            subprocess.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        ip(f"addr add {BARE}/30 dev eth0", *enter)
        ip("link set eth0 up", *enter)
        ip(f"route add default via {GATE}", *enter)
        yield enter
    finally:
        with world.inside():
            subprocess.run(["ip", "link", "del", "bare"], check=False)
            subprocess.run(["nft", "delete", "table", "ip", "bare"], check=False)
        holder.kill()
        holder.wait()


def note(samples: Samples, what: str, told: str) -> None:
    connect, rate = json.loads(told)
    samples.setdefault(f"{what}_connect", []).append(connect)
    samples.setdefault(f"{what}_gb_per_second", []).append(rate)


def bare_turn(samples: Samples, enter: list[str]) -> None:
    done = subprocess.run([*enter, sys.executable, "-c", CLIENT], check=True, capture_output=True, text=True)
    note(samples, "floor_net", done.stdout)


def plain(samples: Samples) -> None:
    world = World()
    far = ["nsenter", "-t", str(world.child.pid), "-n", sys.executable, "-c", SINK]
    try:
        with started(*far):
            for log in ("off", "names", "full"):
                server = Abroad(world)
                with own_server("--network-log", log, made=server), bare(world) as enter, server.box() as box:
                    box.files.write("/tmp/client.py", CLIENT)
                    for _ in range(TURNS):
                        bare_turn(samples, enter)
                        note(samples, f"net_{log}", box.commands.run("python3 /tmp/client.py", timeout=60).stdout)
    finally:
        world.close()


def gateway(build: Path, samples: Samples) -> None:
    """The host of a rule has another port beside the one that the tests' own server has: the lab turns all TCP."""
    lab = Lab()
    load = str(build / "bench/tls_load")
    at = WS.rsplit(".", 1)[0] + ".6"
    try:
        serve = [*lab.enter("net"), load, "serve", at, "443", str(lab.dir / "api.pem"), str(lab.dir / "api.key")]
        with started(*serve):
            lab.set("one", hosts={"*.example.com": {"X-Key": "${e2b.secrets.key}"}}, secrets={"key": "s"}, log=0)

            def ask(box: str, connections: int) -> Any:
                words = [load, "ask", at, "443", "api.example.com", str(lab.dir / "both.pem"), str(connections), "3"]
                return json.loads(lab.client(box, *words))

            for _ in range(TURNS):
                direct, through = ask("plain", 1)["p50_ms"], ask("one", 1)["p50_ms"]
                samples.setdefault("floor_https_ms", []).append(direct)
                samples.setdefault("gateway_ms", []).append(through)
                samples.setdefault("gateway_added_ms", []).append(through - direct)
                samples.setdefault("floor_https_rate", []).append(ask("plain", 32)["per_second"])
                samples.setdefault("gateway_rate", []).append(ask("one", 32)["per_second"])
    finally:
        lab.close()


def main(build: Path, out: Path) -> None:
    samples: Samples = {}
    os.environ.setdefault("CLOCHE_BIN", str(build / "cloche"))
    gateway(build, samples)
    plain(samples)
    out.write_text(json.dumps(samples))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
