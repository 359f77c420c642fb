# SPDX-License-Identifier: Apache-2.0
"""Boxes of templates whose start command runs, made ahead: restored, frozen, and nobody's until somebody asks.

The servers here keep no other boxes ready (`--pool 0`), so whatever waits is one of these.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recipes import Order, fresh, order, run
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import RawBox

TICKS = (
    'exec python3 -c "\n'
    "import http.server as h, threading, time\n"
    "n = [0]\n"
    "def tick():\n"
    "    while True:\n"
    "        n[0] += 1\n"
    "        time.sleep(0.05)\n"
    "class A(h.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        body = (str(n[0]) + ' ' + open('/tmp/word').read()).encode()\n"
    "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
    "        self.wfile.write(body)\n"
    "    def log_message(self, *a): pass\n"
    "threading.Thread(target=tick, daemon=True).start()\n"
    "h.ThreadingHTTPServer(('127.0.0.1', 8600), A).serve_forever()\n"
    '"'
)


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server(start=False) as made:
        yield made


def waiting(server: Server) -> int:
    """Boxes that are whole and wait."""
    lines = server.figures().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("cloche_warm_boxes "))


def made_ahead(server: Server) -> set[str]:
    """Names of all boxes that were made ahead, of those given out too."""
    return {entry.name for entry in (server.data / "boxes").iterdir() if entry.name.startswith("ready-")}


def serving(server: Server, name: str, word: str, command: str = TICKS) -> Order:
    return order(
        server.wire, name,
        run(f"echo -n {word} > /tmp/word"),
        startCmd=command, readyCmd="curl -sf http://127.0.0.1:8600/",
    ).ready()  # fmt: skip


def said(box: RawBox) -> tuple[int, str]:
    ticks, word = box.port(8600, path="/").text.split(" ")
    return int(ticks), word


def heat(server: Server, build: Order, count: int = 2) -> None:
    """A first create, after which boxes are kept ready."""
    build.box().kill()
    eventually(lambda: waiting(server) == count)


def test_the_server_answers_and_every_box_is_somebody(server: Server) -> None:
    server.start("--pool", "0")
    build = serving(server, fresh("pool"), "one")
    assert waiting(server) == 0, "a template that nobody asked for keeps none"
    heat(server, build)
    warm = made_ahead(server)
    boxes = [build.box(envVars={"WHO": f"box{n}"}) for n in range(2)]
    try:
        assert [said(box)[1] for box in boxes] == ["one", "one"]
        told = [box.run("echo $E2B_SANDBOX_ID $WHO; cat /proc/sys/kernel/random/uuid")[1].split() for box in boxes]
        assert [one[:2] for one in told] == [[box.id, f"box{n}"] for n, box in enumerate(boxes)]
        assert told[0][2] != told[1][2]
        assert warm <= made_ahead(server), "both were there before they were asked for"
        boxes[0].run("echo other > /tmp/word")
        assert said(boxes[0])[1].strip() == "other"
        assert said(boxes[1])[1] == "one"
    finally:
        for box in boxes:
            box.kill()
    eventually(lambda: waiting(server) == 2)


def test_no_time_passes_for_a_warm_box(server: Server) -> None:
    server.start("--pool", "0", "--ready-pool", "1")
    build = serving(server, fresh("still"), "one")
    heat(server, build, 1)
    first = build.box(envVars={"A": "1"})
    before = said(first)[0]
    first.kill()
    eventually(lambda: waiting(server) == 1)
    time.sleep(4)  # nothing may happen: eighty ticks, were it running
    began = time.monotonic()
    box = build.box()
    after = said(box)[0]
    awake = time.monotonic() - began
    box.kill()
    assert after - before <= 20 * awake + 1, "it ran while it waited"


def test_a_moved_tag_never_gives_a_box_of_the_old_build(server: Server) -> None:
    server.start("--pool", "0")
    name = fresh("moved")
    old = serving(server, name, "old")
    heat(server, old)
    new = serving(server, name, "new")
    for _ in range(3):
        box = new.box()
        assert said(box)[1] == "new"
        box.kill()
    pinned = server.wire.create(f"{name}:{old.build}")
    assert said(pinned)[1] == "old"
    pinned.kill()


def test_they_go_with_their_template(server: Server) -> None:
    server.start("--pool", "0")
    build = serving(server, fresh("gone"), "one")
    heat(server, build)
    assert server.wire.call("DELETE", f"/templates/{build.template}").status == 204
    eventually(lambda: waiting(server) == 0)
    eventually(lambda: not made_ahead(server))


def test_paused_boxes_and_snapshots_of_them_come_back(server: Server) -> None:
    server.start("--pool", "0")
    build = serving(server, fresh("sleeps"), "one")
    heat(server, build)
    box = build.box()
    box.run("echo -n mine > /tmp/word")
    assert server.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    assert server.wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status in (200, 201)
    assert said(box)[1] == "mine"
    shot = server.wire.call("POST", f"/sandboxes/{box.id}/snapshots", {})
    assert shot.status == 201, shot.body
    box.kill()
    copy = server.wire.create(shot.json()["snapshotID"])
    assert said(copy)[1] == "mine"
    copy.kill()


@pytest.mark.parametrize("option", [("--ready-pool", "0"), ("--ready-pool-mb", "1")], ids=["number", "memory"])
def test_a_limit_that_allows_none(server: Server, option: tuple[str, str]) -> None:
    server.start("--pool", "0", *option)
    build = serving(server, fresh("none"), "one")
    for _ in range(3):
        box = build.box()
        assert said(box)[1] == "one"
        box.kill()
    assert not made_ahead(server)


def test_the_least_recently_used_template_makes_room(server: Server) -> None:
    """Boxes of 40 MB and a Python each, in a limit that has room for three of them."""
    server.start("--pool", "0", "--ready-pool-mb", "180")
    holds = TICKS.replace("n = [0]", "import os; held = os.urandom(40 << 20); n = [0]")
    first, second = (serving(server, fresh("room"), word, holds) for word in ("one", "two"))
    heat(server, first)
    of_first = made_ahead(server)
    second.box().kill()
    eventually(lambda: waiting(server) == 3 and len(made_ahead(server) & of_first) == 1)
    warm = made_ahead(server) - of_first
    boxes = [second.box() for _ in range(2)]
    assert [said(box)[1] for box in boxes] == ["two", "two"]
    assert warm <= made_ahead(server), "both were there before they were asked for"
    for box in boxes:
        box.kill()
    eventually(lambda: waiting(server) == 3)


def processes(server: Server) -> set[int]:
    """Of boxes of this server, seen by their names in their control groups."""
    names = {entry.name for entry in (server.data / "boxes").iterdir()}
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            groups = (entry / "cgroup").read_text()
        except OSError:
            continue
        if any(f"/{name}" in groups for name in names):
            found.add(int(entry.name))
    return found


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nothing_of_them_is_left(server: Server, how: str) -> None:
    server.start("--pool", "0", "--zygotes", "0")
    build = serving(server, fresh("left"), "one")
    heat(server, build)
    left = processes(server)
    assert left
    if how == "stopped":
        assert server.stop() == 0
    else:
        os.kill(server.wardens()[0], signal.SIGKILL)
        eventually(lambda: server.wire.call("GET", "/sandboxes").status == 200)
        eventually(lambda: not made_ahead(server))
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    if how == "killed":
        build.wire = server.wire
        box = build.box()
        assert said(box)[1] == "one"
        box.kill()
