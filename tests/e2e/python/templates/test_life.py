# SPDX-License-Identifier: Apache-2.0
"""The life of a template: cancelled, deleted, published, kept by what runs, and found after a restart."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.recipes import Order, fresh, order, run
from support.server import Server
from support.waiting import eventually
from support.wire import Wire


def test_a_newer_build_cancels_the_running_one(wire: Wire) -> None:
    name = fresh("newer")
    old = order(wire, name, run("sleep 60"))
    new = order(wire, name, run("echo new > ~/mark"))
    reason = old.failed()
    assert "cancel" in reason["message"].lower() or "newer" in reason["message"].lower()
    new.ready()
    box = new.box()
    try:
        assert box.run("cat ~/mark")[1] == "new\n"
    finally:
        box.kill()


def test_builds_run_side_by_side(wire: Wire) -> None:
    began = time.monotonic()
    builds = [order(wire, fresh("beside"), run(f"sleep 2; echo {n} > ~/n")) for n in range(3)]
    for build in builds:
        build.ready()
    assert time.monotonic() - began < 60


def test_a_template_is_deleted_once_no_box_of_it_is_left(wire: Wire) -> None:
    build = order(wire, fresh("gone"), run("true")).ready()
    box = build.box()
    try:
        refused = wire.call("DELETE", f"/templates/{build.template}")
        assert (refused.status, refused.json()["code"]) == (400, 400)
        assert box.run("whoami")[1] == "user\n"
    finally:
        box.kill()
    assert wire.call("DELETE", f"/templates/{build.name}").status == 204
    for path in (f"/templates/{build.name}", f"/templates/{build.template}"):
        got = wire.call("DELETE", path)
        assert (got.status, got.json()["code"]) == (404, 404)
    assert wire.call("GET", f"/templates/aliases/{build.name}").status == 404
    assert wire.call("POST", "/sandboxes", {"templateID": build.name}).status == 404
    assert build.template not in [i["templateID"] for i in wire.call("GET", "/templates").json()]
    again = order(wire, build.name, run("true")).ready()
    assert again.template != build.template


def test_deleting_while_it_builds(wire: Wire) -> None:
    build = order(wire, fresh("early"), run("echo begun; sleep 60"))
    eventually(lambda: any("]: begun" in line for line in build.log()))
    assert wire.call("DELETE", f"/templates/{build.template}").status == 204
    assert build.template not in [i["templateID"] for i in wire.call("GET", "/templates").json()]


def test_a_child_keeps_what_it_was_made_of(wire: Wire) -> None:
    parent = order(wire, fresh("parent"), run("echo kept > ~/kept")).ready()
    child = order(wire, fresh("child"), run("true"), fromTemplate=parent.name).ready()
    assert wire.call("DELETE", f"/templates/{parent.name}").status == 204
    box = child.box()
    try:
        assert box.run("cat ~/kept")[1] == "kept\n"
    finally:
        box.kill()


class TestOtherTeams:
    @pytest.fixture
    def build(self, wire: Wire) -> Order:
        return order(wire, fresh("private"), run("echo mine > ~/mark")).ready()

    def test_a_private_template_is_unknown_to_other_teams(self, build: Order, stranger: Wire) -> None:
        whole = build.made["names"][0]
        for reference in (build.name, build.template, whole):
            got = stranger.call("POST", "/sandboxes", {"templateID": reference})
            assert got.status in (403, 404), reference
        refused = order(stranger, fresh("thief"), run("true"), fromTemplate=whole).failed()
        assert refused["step"] == "base"
        assert stranger.call("DELETE", f"/templates/{build.template}").status == 403
        assert stranger.call("DELETE", f"/templates/{build.name}").status == 404
        assert stranger.call("PATCH", f"/v2/templates/{build.template}", {"public": True}).status == 403
        assert stranger.call("GET", f"/templates/{build.template}/tags").status in (403, 404)
        target = {"target": build.template, "tags": ["stolen"]}
        assert stranger.call("POST", "/templates/tags", target).status in (400, 403, 404)

    def test_public_is_everybodys_to_use(self, wire: Wire, build: Order, stranger: Wire) -> None:
        got = wire.call("PATCH", f"/v2/templates/{build.name}", {"public": True})
        assert (got.status, got.json()) == (200, {"names": build.made["names"]})
        whole = build.made["names"][0]
        box = stranger.create(whole)
        try:
            assert box.run("cat ~/mark")[1] == "mine\n"
        finally:
            box.kill()
        child = order(stranger, fresh("child"), run("true"), fromTemplate=whole).ready()
        assert child.made["public"] is False
        assert stranger.call("PATCH", f"/v2/templates/{build.template}", {"public": False}).status == 403
        assert wire.call("PATCH", f"/v2/templates/{build.name}", {"public": False}).status == 200
        assert stranger.call("POST", "/sandboxes", {"templateID": whole}).status in (403, 404)

    def test_what_cannot_be_changed(self, wire: Wire, build: Order) -> None:
        assert wire.call("PATCH", f"/v2/templates/{build.name}", {}).status == 200
        assert wire.call("PATCH", f"/v2/templates/{build.name}", {"public": "yes"}).status == 400
        assert wire.call("PATCH", f"/v2/templates/{fresh('none')}", {"public": True}).status == 404


def test_many_boxes_of_a_new_template_at_once(wire: Wire) -> None:
    build = order(wire, fresh("many"), run("echo shared > ~/f")).ready()
    with ThreadPoolExecutor(6) as pool:
        boxes = list(pool.map(lambda _: build.box(), range(6)))
    try:
        for number, box in enumerate(boxes):
            assert box.run(f"cat ~/f; echo {number} > ~/f")[1] == "shared\n"
        assert [box.run("cat ~/f")[1] for box in boxes] == [f"{n}\n" for n in range(6)]
    finally:
        for box in boxes:
            box.kill()


class TestRestarts:
    def test_templates_and_their_logs_outlive_the_daemon(self, server: Server) -> None:
        build = order(server.wire, fresh("lasts"), run("echo kept > ~/kept")).ready()
        log = build.log()
        server.stop()
        server.start()
        build.wire = server.wire
        assert build.status()["status"] == "ready"
        assert build.log() == log
        box = build.box()
        assert box.run("cat ~/kept")[1] == "kept\n"
        box.kill()
        again = order(server.wire, fresh("cached"), run("echo kept > ~/kept")).ready()
        assert any("CACHED" in line for line in again.log())

    def test_a_build_that_a_crash_cut_short_says_so(self, server: Server) -> None:
        build = order(server.wire, fresh("cut"), run("echo begun; sleep 60"))
        eventually(lambda: any("]: begun" in line for line in build.log()))
        for pid in server.wardens():
            os.kill(pid, signal.SIGKILL)
        reason = build.failed()
        assert reason["message"]
        order(server.wire, build.name, run("true")).ready()

    def test_a_build_goes_on_after_a_crash_that_the_warden_outlives(self, server: Server) -> None:
        build = order(server.wire, fresh("goes-on"), run("echo begun; sleep 3"))
        eventually(lambda: any("]: begun" in line for line in build.log()))
        server.signal(signal.SIGKILL)
        server.start()
        build.wire = server.wire
        build.ready()
