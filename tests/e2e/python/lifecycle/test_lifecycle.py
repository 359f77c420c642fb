# SPDX-License-Identifier: Apache-2.0
"""The daemon's own life: stops, crashes and restarts lose no box and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import e2b_code_interpreter as interpreter
import pytest

from support.server import STOP_SECONDS, Server, binary
from support.state import leaked, look, processes
from support.waiting import eventually
from support.wire import RawBox, Wire

pytestmark = pytest.mark.timeout(180)

LONG_CELL = """
import itertools, os, time
for n in itertools.count():
    open("/tmp/cell.next", "w").write(str(n))
    os.rename("/tmp/cell.next", "/tmp/cell")
    time.sleep(0.1)
"""


def alive(box: RawBox) -> bool:
    return box.agent("GET", "/health").status == 204


def moved(box: RawBox, server: Server) -> RawBox:
    """The same box seen through the server's present address."""
    return RawBox(server.wire, box.made)


class Marked:
    """A box with things in it that a careless restart would lose."""

    def __init__(self, server: Server) -> None:
        self.cell = server.cell(timeout=600, metadata={"kept": "yes"})
        self.cell.run_code("x = 41")
        self.cell.files.write("kept.txt", "kept")
        self.command = self.cell.commands.run(
            "n=0; while :; do n=$((n+1)); echo $n > /tmp/next; mv /tmp/next /tmp/count; sleep 0.1; done",
            background=True,
            timeout=0,
        )
        self.command.disconnect()
        eventually(lambda: self.cell.files.exists("/tmp/count"))
        threading.Thread(target=self.long_cell, daemon=True).start()
        eventually(lambda: self.cell.files.exists("/tmp/cell"))

    def long_cell(self) -> None:
        """One that is running while the server stops, which breaks its client's connection and nothing else."""
        context = self.cell.create_code_context()
        with contextlib.suppress(Exception):
            self.cell.run_code(LONG_CELL, context=context, timeout=0)

    def check(self, server: Server) -> interpreter.Sandbox:
        again = server.connect(self.cell.sandbox_id)
        assert again.run_code("x + 1").text == "42"
        assert again.files.read("kept.txt") == "kept"
        assert self.command.pid in [process.pid for process in again.commands.list()]
        first = int(again.files.read("/tmp/count"))
        eventually(lambda: int(again.files.read("/tmp/count")) > first)
        first = int(again.files.read("/tmp/cell"))
        eventually(lambda: int(again.files.read("/tmp/cell")) > first)
        assert again.get_info().metadata == {"kept": "yes"}
        return again


def test_sigint_ends_boxes_and_leaves_nothing() -> None:
    server = Server()
    data = str(server.data)
    before = look(data)
    server.start()
    try:
        wire = server.wire
        boxes = [wire.create(timeout=600), wire.create("code-interpreter-v1", timeout=600)]
        assert boxes[0].run("echo x; sleep 100 >/dev/null 2>&1 &")[0] == 0
        assert boxes[1].execute("1")[-1] == {"type": "end_of_execution"}
        assert processes(data)
        assert server.stop() == 0
        assert leaked(before, data) == set()
        names = " ".join(str(path) for path in server.data.rglob("*"))
        assert not [box.id for box in boxes if box.id in names]
    finally:
        server.close()


def test_sigterm_keeps_boxes_for_the_next_start(server: Server) -> None:
    marked = Marked(server)
    assert server.signal(signal.SIGTERM) == 0
    assert processes(str(server.data))
    server.start()
    again = marked.check(server)
    assert again.kill()
    assert not again.is_running()


def test_new_boxes_can_be_made_after_a_restart(server: Server) -> None:
    old = server.wire.create(timeout=600)
    server.signal(signal.SIGTERM)
    server.start()
    new = server.wire.create(timeout=600)
    listed = {item["sandboxID"] for item in server.wire.call("GET", "/v2/sandboxes").json()}
    assert {old.id, new.id} <= listed
    assert new.run("echo new")[1] == "new\n"
    assert moved(old, server).run("echo old")[1] == "old\n"


def test_a_killed_gate_comes_back(server: Server) -> None:
    marked = Marked(server)
    gates = server.gates()
    assert gates
    for pid in gates:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: server.wire.call("GET", "/health").status == 200)
    eventually(lambda: server.gates() and not set(server.gates()) & set(gates))
    marked.check(server)


def test_a_killed_warden_comes_back(server: Server) -> None:
    marked = Marked(server)
    wardens = server.wardens()
    assert wardens
    for pid in wardens:
        os.kill(pid, signal.SIGKILL)

    def works() -> bool:
        got = server.wire.call("POST", "/sandboxes", {"templateID": "base", "timeout": 60})
        if got.status != 201:
            return False
        return RawBox(server.wire, got.json()).kill() == 204

    eventually(works)
    assert server.process
    assert server.process.poll() is None
    marked.check(server)


def test_a_killed_supervisor_is_followed_by_a_start_that_adopts(server: Server) -> None:
    marked = Marked(server)
    others = server.gates() + server.wardens()
    server.signal(signal.SIGKILL)
    eventually(lambda: not [pid for pid in others if os.path.exists(f"/proc/{pid}")])
    server.start()
    marked.check(server)


def test_everything_killed_at_once_is_adopted_or_swept(server: Server) -> None:
    marked = Marked(server)
    doomed = [server.pid, *server.wardens(), *server.gates()]
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    assert server.process
    server.process.wait(STOP_SECONDS)
    server.start()
    marked.check(server)


def test_a_start_after_a_crash_in_the_middle_of_creates(server: Server) -> None:
    wire = server.wire
    script = (
        "import sys; sys.path.insert(0, '.')\n"
        "from support.wire import Wire\n"
        f"wire = Wire({wire.url!r}, {wire.key!r})\n"
        "while True:\n    wire.create(timeout=600)\n"
    )
    maker = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=os.path.dirname(os.path.dirname(__file__)),
        stderr=subprocess.DEVNULL,
    )
    eventually(lambda: len(server.wire.call("GET", "/sandboxes").json()) >= 2)
    for pid in [*server.wardens(), server.pid, *server.gates()]:
        os.kill(pid, signal.SIGKILL)
    assert server.process
    server.process.wait(STOP_SECONDS)
    maker.wait(100)
    server.start()
    listed = server.wire.call("GET", "/v2/sandboxes").json()
    for item in listed:
        answer = server.wire.call(
            "POST", f"/sandboxes/{item['sandboxID']}/connect", {"timeout": 60}
        )
        assert answer.status == 200
        assert alive(RawBox(server.wire, answer.json()))


def test_timeouts_survive_a_restart(server: Server) -> None:
    box = server.wire.create(timeout=12)
    end = datetime.fromisoformat(server.wire.call("GET", f"/sandboxes/{box.id}").json()["endAt"])
    server.signal(signal.SIGTERM)
    server.start()
    detail = server.wire.call("GET", f"/sandboxes/{box.id}").json()
    assert datetime.fromisoformat(detail["endAt"]) == end
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{box.id}").status == 404)
    assert -0.3 <= (datetime.now(UTC) - end).total_seconds() <= 30


def test_a_box_whose_time_ran_out_meanwhile_is_gone(server: Server) -> None:
    box = server.wire.create(timeout=2)
    server.signal(signal.SIGTERM)
    time.sleep(2.5)  # its end, two seconds after the start, passes while no server runs
    server.start()
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{box.id}").status == 404)
    assert not alive(moved(box, server))


def test_a_box_that_died_meanwhile_is_noticed(server: Server) -> None:
    box = server.wire.create(timeout=600)
    server.signal(signal.SIGTERM)
    for line in processes(str(server.data)):
        os.kill(int(line.split()[1]), signal.SIGKILL)
    server.start()
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{box.id}").status == 404)


def test_a_box_that_dies_by_itself_is_noticed(server: Server) -> None:
    other = server.wire.create(timeout=600)
    box = server.wire.create("code-interpreter-v1", timeout=600)
    os.kill(agent_of(box), signal.SIGKILL)
    eventually(lambda: server.wire.call("GET", f"/sandboxes/{box.id}").status == 404)
    assert not alive(box)
    assert alive(other)


def agent_of(box: RawBox) -> int:
    """The box's first process on this machine, found by a process inside that sleeps oddly."""
    odd = f"{3_000_000 + time.time_ns() % 1_000_000}"
    box.run(f"setsid sleep {odd} >/dev/null 2>&1 </dev/null &")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found = odd.encode() in file.read()
            if found:
                with open(f"/proc/{pid}/status") as file:
                    parent = next(line for line in file if line.startswith("PPid:")).split()[1]
                return int(parent)
        except OSError:
            continue
    raise AssertionError("the box's processes cannot be seen")


def test_the_key_survives_a_restart(server: Server) -> None:
    server.signal(signal.SIGTERM)
    server.start()
    assert server.wire.call("GET", "/v2/sandboxes").status == 200
    assert Wire(server.url, "e2b_" + "1" * 40).call("GET", "/v2/sandboxes").status == 401


def test_two_servers_do_not_share_a_directory(server: Server) -> None:
    second = subprocess.run(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(server.data)],
        capture_output=True,
        timeout=20,
        stdin=subprocess.DEVNULL,
    )
    assert second.returncode != 0
    assert second.stderr or second.stdout
    assert server.wire.call("GET", "/health").status == 200


def test_a_server_ends_with_the_process_it_belongs_to() -> None:
    server = Server()
    data = str(server.data)
    before = look(data)
    owner = subprocess.Popen(["sleep", "1000"])
    try:
        server.start(exit_with=owner.pid)
        box = server.wire.create(timeout=600)
        assert alive(box)
        owner.kill()
        owner.wait()
        assert server.process
        server.process.wait(STOP_SECONDS)
        assert leaked(before, data) == set()
    finally:
        owner.kill()
        owner.wait()
        server.close()
