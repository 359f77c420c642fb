# SPDX-License-Identifier: Apache-2.0
"""Events outlive their sandboxes, the server and the machine, and go when they are old or too many."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from support.events import events, kinds
from support.reboot import power_off
from support.server import Server, binary, own_server
from support.state import processes
from support.waiting import eventually
from support.wire import RawBox

pytestmark = pytest.mark.timeout(180)
OLD_US = 8 * 86400 * 1_000_000


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_events_survive_a_restart(server: Server, how: signal.Signals) -> None:
    gone, stays = server.wire.create(timeout=600), server.wire.create(timeout=600)
    gone.kill()
    before = events(server.wire)
    server.signal(how)
    server.start()
    assert events(server.wire) == before
    server.wire.call("DELETE", f"/sandboxes/{stays.id}")
    told = events(server.wire, stays.id)
    assert kinds(told) == "created killed"
    assert told[0]["sandboxExecutionId"] == told[1]["sandboxExecutionId"]


def test_who_follows_waits_for_a_restarted_server(server: Server) -> None:
    box = server.wire.create(timeout=600)
    command = [binary(), "events", "-f", "--json", "--data", str(server.data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout
            told = [json.loads(follower.stdout.readline())]
            server.signal(signal.SIGTERM)
            server.start()
            server.wire.call("DELETE", f"/sandboxes/{box.id}")
            told.append(json.loads(follower.stdout.readline()))
            assert follower.poll() is None
        finally:
            follower.terminate()
    assert told == events(server.wire, box.id)
    assert kinds(told) == "created killed"


def test_a_box_found_dead_is_told_once(server: Server) -> None:
    box = server.wire.create(timeout=600, metadata={"a": "b"})
    server.signal(signal.SIGTERM)
    for line in processes(str(server.data)):
        os.kill(int(line.split()[1]), signal.SIGKILL)
    server.start()
    for _ in range(2):
        told = events(server.wire, box.id)
        assert kinds(told) == "created killed"
        assert told[1]["eventData"]["kill_reason"] == "orphaned"
        assert told[1]["eventData"]["sandbox_metadata"] == {"a": "b"}
        assert set(told[1]["eventData"]["execution"]) == {"started_at", "vcpu_count", "memory_mb", "execution_time"}
        server.signal(signal.SIGTERM)
        server.start()


def test_after_a_power_cut_lost_boxes_are_told_and_paused_ones_go_on(server: Server) -> None:
    lost, kept = server.wire.create(timeout=600), server.wire.create(timeout=600)
    assert server.wire.call("POST", f"/sandboxes/{kept.id}/pause").status == 204
    power_off(server)
    server.start()
    assert kinds(events(server.wire, lost.id)) == "created killed"
    assert server.wire.call("POST", f"/sandboxes/{kept.id}/connect", {"timeout": 60}).status == 201
    assert kinds(events(server.wire, kept.id)) == "created paused resumed"


def first_process(box: RawBox) -> int:
    """The box's first process on this machine: the parent of one inside that sleeps oddly."""
    odd = f"{3_000_000 + time.time_ns() % 1_000_000}"
    box.run(f"setsid sleep {odd} >/dev/null 2>&1 </dev/null &")

    def parent() -> int:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == f"sleep\0{odd}\0".encode():
                    return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
        return 0

    return eventually(parent)


def test_a_box_that_dies_by_itself_is_told(server: Server) -> None:
    box = server.wire.create(timeout=600)
    os.kill(first_process(box), signal.SIGKILL)
    eventually(lambda: kinds(events(server.wire, box.id)) == "created killed")
    data = events(server.wire, box.id)[1]["eventData"]
    assert (data["kill_reason"], data["kill_cause"].split(":")[0]) == ("unknown", "crashed")


def test_a_server_that_ends_its_boxes_tells_it(server: Server) -> None:
    box = server.wire.create(timeout=600)
    assert server.stop() == 0
    server.start()
    data = events(server.wire, box.id)[1]["eventData"]
    assert (data["kill_reason"], data["kill_cause"]) == ("admin", "stopped: the server was shut down")


def age(server: Server, box: str) -> None:
    """All events of a box are eight days older."""
    with sqlite3.connect(server.data / "cloche.db") as db:
        db.execute("UPDATE event SET at=at-? WHERE sandbox=?", (OLD_US, box))
    db.close()


def count(server: Server) -> int:
    with sqlite3.connect(server.data / "cloche.db") as db:
        (rows,) = db.execute("SELECT count(*) FROM event").fetchone()
    db.close()
    return rows


def test_old_events_are_not_listed_and_go(server: Server) -> None:
    old = server.wire.create(timeout=600)
    old.kill()
    age(server, old.id)
    new = server.wire.create(timeout=600)
    assert {event["sandboxId"] for event in events(server.wire)} == {new.id}
    assert events(server.wire, old.id) == [], "its end is still remembered, its events are not"
    new.kill()
    eventually(lambda: count(server) == 2, 60)


def test_no_more_events_are_kept_than_the_setting_says() -> None:
    with own_server("--events-max", "1000") as server:
        box = server.wire.create(timeout=600)
        with sqlite3.connect(server.data / "cloche.db") as db:
            db.execute(
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<5000)"
                " INSERT INTO event(id,at,team,sandbox,execution,template,build,type,data,place)"
                " SELECT 'x'||i, at, team, 'ifilled', execution, template, build, type, data, place+i FROM event, n"
            )
        db.close()
        box.kill()
        eventually(lambda: count(server) == 1000, 90)
        assert kinds(events(server.wire, box.id)) == "killed"
