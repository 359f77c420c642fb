# SPDX-License-Identifier: Apache-2.0
"""Lifecycle events: every change of a sandbox is told, to its team alone, before the call that made it has answered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import e2b
import pytest

from support.commands import cloche
from support.events import Event, events, kinds
from support.paused import connect, fork, pause, snapshot
from support.server import own_server
from support.waiting import eventually
from support.wire import RawBox, Wire

KEYS = {
    "id",
    "version",
    "type",
    "timestamp",
    "eventCategory",
    "eventLabel",
    "eventData",
    "sandboxId",
    "sandboxExecutionId",
    "sandboxTemplateId",
    "sandboxBuildId",
    "sandboxTeamId",
}
EXECUTION = {"started_at", "vcpu_count", "memory_mb", "execution_time"}


def is_uuid(text: str) -> bool:
    return str(uuid.UUID(text)) == text


def when(text: str) -> datetime:
    return datetime.fromisoformat(text)


def last(wire: Wire, box: str) -> Event:
    return events(wire, box)[-1]


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120)
    yield made
    made.kill()


@pytest.fixture(scope="module")
def other(wire: Wire) -> Wire:
    team = cloche("team", "create", f"Events {uuid.uuid4().hex[:8]}")
    return Wire(wire.url, cloche("key", "create", "for a test", "--team", team))


def test_a_whole_life_with_the_stock_client_is_told_in_order(wire: Wire) -> None:
    box = e2b.Sandbox.create("base", timeout=60, metadata={"who": 'a "user" of é'})
    before = datetime.now(UTC)
    box.set_timeout(100)
    box.update_network({"allow_out": ["8.8.8.8", "example.com"], "deny_out": ["0.0.0.0/0"]})
    shot = box.create_snapshot()
    box.pause()
    box = e2b.Sandbox.connect(box.sandbox_id, timeout=60)
    (child,) = box.fork(timeout=30)
    assert isinstance(child, e2b.Sandbox), child
    box.kill()
    told = events(wire, box.sandbox_id)
    wire.call("DELETE", f"/templates/{shot.snapshot_id.replace(':', '%3A').replace('/', '%2F')}")
    assert kinds(told) == "created updated updated checkpointed paused resumed checkpointed killed"
    assert all(set(event) == KEYS for event in told)
    assert all(is_uuid(event[key]) for event in told for key in ("id", "sandboxExecutionId", "sandboxBuildId"))
    assert len({event["id"] for event in told}) == len(told)
    assert {event["version"] for event in told} == {"v2"}
    assert [event["eventLabel"] for event in told] == ["create", "update", "update", "", "pause", "resume", "", "kill"]
    assert all(event["eventCategory"] == ("lifecycle" if event["eventLabel"] else "") for event in told)
    assert [event["timestamp"] for event in told] == sorted(event["timestamp"] for event in told)
    assert all(event["timestamp"].endswith("Z") for event in told)
    assert all(event["eventData"]["sandbox_metadata"] == {"who": 'a "user" of é'} for event in told)
    runs = [event["sandboxExecutionId"] for event in told]
    assert len(set(runs[:5])) == len(set(runs[5:])) == 1
    assert runs[0] != runs[5]
    end = told[1]["eventData"]["set_timeout"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", end)
    assert abs(when(end) - before - timedelta(seconds=100)) < timedelta(seconds=30)
    assert told[2]["eventData"]["network_egress"] == {
        "allowed_cidrs": ["8.8.8.8/32"],
        "denied_cidrs": ["0.0.0.0/0"],
        "allowed_domains": ["example.com"],
    }
    for event, first in ((told[4], told[0]), (told[7], told[5])):
        run = event["eventData"]["execution"]
        assert set(run) == EXECUTION
        assert abs(when(run["started_at"]) - when(first["timestamp"])) < timedelta(seconds=1)
        length = when(event["timestamp"]) - when(run["started_at"])
        assert abs(length - timedelta(milliseconds=run["execution_time"])) < timedelta(seconds=1)
        assert run["vcpu_count"] > 0
        assert run["memory_mb"] > 0
    assert told[7]["eventData"]["kill_reason"] == "request"
    assert told[7]["eventData"]["kill_cause"].startswith("killed: by API key '")
    born = events(wire, child.sandbox_id)
    child.kill()
    assert kinds(born) == "resumed"
    assert born[0]["sandboxExecutionId"] not in runs
    assert born[0]["sandboxTemplateId"] == told[0]["sandboxTemplateId"]
    assert born[0]["eventData"] == {"sandbox_metadata": {"who": 'a "user" of é'}}


def test_the_list_of_the_team_has_them_before_the_calls_answer(wire: Wire, box: RawBox) -> None:
    newest = wire.call("GET", "/events/sandboxes?limit=1").json()
    assert (kinds(newest), newest[0]["sandboxId"]) == ("created", box.id)
    assert newest[0]["eventData"] is None
    assert box.kill() == 204
    newest = wire.call("GET", "/events/sandboxes?limit=2").json()
    assert kinds(newest) == "killed created"
    assert {event["sandboxId"] for event in newest} == {box.id}
    assert "sandbox_metadata" not in newest[0]["eventData"]


def test_pages_order_and_types(wire: Wire, box: RawBox) -> None:
    for seconds in (60, 70, 80):
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": seconds}).status == 204
    assert wire.call("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 100}).status == 204
    box.kill()
    path = f"/events/sandboxes/{box.id}"
    whole = wire.call("GET", path).json()
    assert kinds(whole) == "killed updated updated updated updated created"
    assert events(wire, box.id) == whole[::-1]
    assert [event for start in (0, 2, 4, 6) for event in events(wire, box.id, offset=start, limit=2)] == whole[::-1]
    assert events(wire, box.id, limit=4, offset=4, orderAsc="false") == whole[4:]
    assert events(wire, box.id, offset=10**15) == []
    created, updated = "sandbox.lifecycle.created", "sandbox.lifecycle.updated"
    assert kinds(events(wire, box.id, types=created)) == "created"
    assert kinds(events(wire, box.id, types=[created, "sandbox.lifecycle.killed"])) == "created killed"
    assert kinds(events(wire, box.id, types=[updated], limit=3)) == "updated updated updated"
    assert events(wire, box.id, types="sandbox.lifecycle.paused") == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=1.5",
        "offset=-1",
        "offset=x",
        "offset=99999999999999999999",
        "orderAsc=yes",
        "orderAsc=1",
        "types=create",
        "types=sandbox.lifecycle.created&types=sandbox.lifecycle.born",
        "types=",
        "types=%zz",
    ],
)
def test_a_query_out_of_range_is_400(wire: Wire, query: str) -> None:
    for path in ("/events/sandboxes", "/events/sandboxes/iabc"):
        got = wire.call("GET", f"{path}?{query}")
        assert (got.status, got.json()["code"]) == (400, 400), query
        assert query.split("=", 1)[0] in got.json()["message"]


def test_errors_have_a_body(wire: Wire) -> None:
    for path in ("/events/sandboxes", "/events/sandboxes/iabc"):
        got = wire.call("GET", path, with_key=False)
        assert (got.status, got.json()["code"]) == (401, 401)
    got = wire.call("GET", "/events/sandboxes/inobodyhasthisone123")
    assert (got.status, got.json()["code"]) == (404, 404)
    assert wire.call("POST", "/events/sandboxes", {}).status == 405
    wrong = wire.call("GET", "/events/sandboxes?types=created")
    assert "sandbox.lifecycle.checkpointed" in wrong.json()["message"], "the six are named"


def test_another_team_sees_nothing(wire: Wire, other: Wire, box: RawBox) -> None:
    theirs = other.create(timeout=60)
    try:
        assert {event["sandboxId"] for event in events(other)} == {theirs.id}
        assert other.call("GET", f"/events/sandboxes/{box.id}").status == 404
        assert wire.call("GET", f"/events/sandboxes/{theirs.id}").status == 404
        assert theirs.id not in {event["sandboxId"] for event in events(wire, orderAsc="false")}
    finally:
        theirs.kill()
    box.kill()
    assert kinds(events(wire, box.id)) == "created killed"
    assert other.call("GET", f"/events/sandboxes/{box.id}").status == 404


def test_the_end_of_its_time_is_a_reason(wire: Wire) -> None:
    box = e2b.Sandbox.create("base", timeout=1)
    eventually(lambda: kinds(events(wire, box.sandbox_id)) == "created killed")
    data = last(wire, box.sandbox_id)["eventData"]
    assert (data["kill_reason"], data["kill_cause"]) == ("timeout", "timeout: its lifetime of 1 s was over")
    assert 900 <= data["execution"]["execution_time"] <= 1100


def test_a_pause_at_the_timeout_and_traffic_that_wakes_are_told(wire: Wire) -> None:
    box = e2b.Sandbox.create("base", timeout=2, lifecycle={"on_timeout": "pause", "auto_resume": True})
    eventually(lambda: kinds(events(wire, box.sandbox_id)) == "created paused")
    assert box.commands.run("echo awake").stdout == "awake\n"
    told = events(wire, box.sandbox_id)
    assert kinds(told)[:22] == "created paused resumed"
    assert told[0]["sandboxExecutionId"] == told[1]["sandboxExecutionId"] != told[2]["sandboxExecutionId"]
    assert told[1]["eventData"]["execution"]["execution_time"] >= 1900
    box.kill()
    assert last(wire, box.sandbox_id)["eventData"]["kill_reason"] == "request"


def test_a_paused_box_that_is_killed_ran_until_its_pause(wire: Wire, box: RawBox) -> None:
    assert pause(box).status == 204
    paused = last(wire, box.id)["eventData"]["execution"]
    box.kill()
    told = events(wire, box.id)
    assert kinds(told) == "created paused killed"
    assert told[2]["eventData"]["execution"] == paused
    assert told[2]["sandboxExecutionId"] == told[0]["sandboxExecutionId"]


def test_what_is_refused_is_not_told(wire: Wire, box: RawBox) -> None:
    seen = events(wire, orderAsc="false", limit=1)
    for body in ({"templateID": "nosuchtemplate"}, {"templateID": "base", "timeout": -1}):
        assert wire.call("POST", "/sandboxes", body).status in (400, 404)
    assert events(wire, orderAsc="false", limit=1) == seen
    assert pause(box).status == 204
    assert pause(box).status == 409
    assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 50}).status == 404
    assert snapshot(box).status == 404
    assert kinds(events(wire, box.id)) == "created paused"
    got = [wire.call("POST", f"/sandboxes/{box.id}/resume", {"timeout": 60}).status for _ in range(2)]
    assert got[0] == 201
    assert kinds(events(wire, box.id)) == "created paused resumed"
    assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 1}).status in (200, 201)
    assert kinds(events(wire, box.id)) == "created paused resumed", "an end that does not move is no news"
    assert connect(box, timeout=90).status in (200, 201)
    assert kinds(events(wire, box.id)) == "created paused resumed updated"


def test_a_box_of_a_snapshot_names_the_template_it_comes_from(wire: Wire, box: RawBox) -> None:
    taken = snapshot(box).json()["snapshotID"]
    copy = wire.create(taken, timeout=60)
    (grandchild,) = fork(copy, timeout=30).json()
    second = snapshot(copy).json()["snapshotID"]
    again = wire.create(second, timeout=60)
    try:
        base = events(wire, box.id)[0]["sandboxTemplateId"]
        for made in (copy.id, grandchild["sandbox"]["sandboxID"], again.id):
            first = events(wire, made)[0]
            assert first["sandboxTemplateId"] == base
            assert first["sandboxBuildId"] != events(wire, box.id)[0]["sandboxBuildId"]
        assert kinds(events(wire, again.id)) == "created"
    finally:
        for made in (copy.id, grandchild["sandbox"]["sandboxID"], again.id):
            wire.call("DELETE", f"/sandboxes/{made}")
        for name in (taken, second):
            wire.call("DELETE", f"/templates/{name.replace(':', '%3A').replace('/', '%2F')}")


def test_ends_that_move_too_often_are_not_all_told() -> None:
    with own_server("--pool", "0") as server:
        wire = server.wire
        box = wire.create(timeout=60)
        began = time.monotonic()
        for _ in range(600):
            assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 60}).status == 204
        took = time.monotonic() - began
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 3000}).status == 204
        told = [event for page in range(8) for event in events(wire, box.id, offset=100 * page)]
        assert 100 <= len(told) <= 202 + 20 * (took + 1)
        ends = datetime.fromisoformat(wire.call("GET", f"/sandboxes/{box.id}").json()["endAt"])
        assert ends > datetime.now(UTC) + timedelta(seconds=2900)


def test_the_largest_metadata_comes_whole(wire: Wire) -> None:
    metadata = {f"key {number}": '"\\' * 1000 + "é" for number in range(30)}
    box = wire.create(timeout=60, metadata=metadata)
    for seconds in range(60, 70):
        wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": seconds})
    box.kill()
    told = events(wire, box.id)
    assert kinds(told) == "created " + "updated " * 10 + "killed"
    assert all(event["eventData"]["sandbox_metadata"] == metadata for event in told)
    assert [json.loads(line) for line in shown("--json", "--sandbox", box.id)] == told


def test_a_box_killed_on_the_host_was_killed_by_the_administrator(wire: Wire, box: RawBox) -> None:
    cloche("kill", box.id)
    data = last(wire, box.id)["eventData"]
    assert (data["kill_reason"], data["kill_cause"]) == ("admin", "killed: by the root user of the host")


# ---- on the machine ----


def shown(*words: str) -> list[str]:
    return cloche("events", *words).splitlines()


def test_the_command_line_shows_the_same_stream(wire: Wire, other: Wire, box: RawBox) -> None:
    theirs = other.create(timeout=60)
    theirs.kill()
    lines = shown("-n", "3")
    assert [line.split()[1:3] for line in lines[-3:]] == [
        ["created", box.id],
        ["created", theirs.id],
        ["killed", theirs.id],
    ]
    assert "reason=request" in lines[-1]
    assert "killed: by API key" in lines[-1]
    assert [json.loads(line) for line in shown("--json", "--sandbox", theirs.id)] == events(other, theirs.id)
    team = events(wire, box.id)[0]["sandboxTeamId"]
    assert json.loads(shown("--json", "--team", team)[-1])["sandboxId"] == box.id
    only = shown("--json", "--type", "killed", "--type", "sandbox.lifecycle.paused", "-n", "1")
    assert [json.loads(line)["sandboxId"] for line in only] == [theirs.id]


def test_the_command_line_follows(wire: Wire, box: RawBox) -> None:
    command = [os.environ["CLOCHE_BIN"], "events", "-f", "--json", "--sandbox", box.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout
            told = [json.loads(follower.stdout.readline())]
            wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 50})
            told.append(json.loads(follower.stdout.readline()))
            box.kill()
            told.append(json.loads(follower.stdout.readline()))
        finally:
            follower.terminate()
    assert kinds(told) == "created updated killed"
    assert told == events(wire, box.id)


@pytest.mark.parametrize(
    ("words", "status"),
    [(("--type", "born"), 2), (("-n", "1001"), 2), (("--sandbox",), 2), (("what",), 2), (("--sandbox", "inone"), 1)],
)
def test_the_command_line_says_what_is_wrong(words: tuple[str, ...], status: int) -> None:
    done = subprocess.run(
        [os.environ["CLOCHE_BIN"], "events", *words], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert words[-1] in done.stderr


def test_the_metrics_count_events() -> None:
    with own_server("--pool", "0") as server:

        def count() -> int:
            found = re.search(r"^cloche_events_total (\d+)$", server.figures(), re.M)
            assert found
            return int(found[1])

        before = count()
        server.wire.create(timeout=30).kill()
        assert count() >= before + 2
