# SPDX-License-Identifier: Apache-2.0
"""Status codes, upload links, log pages: what the wire says when nobody smooths it over."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path

import pytest

from support.recipes import Order, fresh, order, path_of, run, step, tarball
from support.state import below
from support.waiting import eventually
from support.wire import Wire


@pytest.fixture(scope="module")
def waiting(wire: Wire) -> Order:
    """A build that is never started."""
    return Order(wire, fresh("waiting")).request()


@pytest.fixture(scope="module")
def done(wire: Wire) -> Order:
    """A build with a log of more than two pages."""
    return order(wire, fresh("paged"), run("seq -f 'n=%g' 250")).ready()


def code(answer) -> tuple[int, int]:
    return answer.status, answer.json()["code"]


class TestUploadLinks:
    def test_what_is_not_there_yet(self, waiting: Order) -> None:
        key = hashlib.sha256(fresh("x").encode()).hexdigest()
        path = f"/templates/{waiting.template}/files/{key}"
        got = waiting.wire.call("GET", path)
        assert got.status == 201
        assert got.json()["present"] is False
        assert got.json()["url"].startswith(("http://", "https://"))
        assert isinstance(got.json().get("headers", {}), dict)
        waiting.upload(tarball(("f", b"x")), key)
        again = waiting.wire.call("GET", path)
        assert again.status == 201
        assert again.json()["present"] is True
        assert again.json()["url"]

    @pytest.mark.parametrize("key", ["x", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 63 + "%2F"])
    def test_a_hash_that_is_none(self, waiting: Order, key: str) -> None:
        assert code(waiting.wire.call("GET", f"/templates/{waiting.template}/files/{key}")) == (400, 400)

    def test_of_a_template_that_is_not_there(self, wire: Wire) -> None:
        got = wire.call("GET", f"/templates/{'a' * 20}/files/{'0' * 64}")
        assert code(got) == (404, 404)

    def test_files_of_another_teams_template_are_refused(self, waiting: Order, stranger: Wire) -> None:
        got = stranger.call("GET", f"/templates/{waiting.template}/files/{'0' * 64}")
        assert got.status == 403

    def test_files_are_known_per_team(self, waiting: Order, stranger: Wire) -> None:
        key = waiting.upload(tarball(("f", fresh("x").encode())))
        other = Order(stranger, fresh("other")).request()
        got = stranger.call("GET", f"/templates/{other.template}/files/{key}")
        assert got.json()["present"] is False

    def test_a_link_is_for_one_file_and_cannot_be_changed(self, waiting: Order) -> None:
        key = hashlib.sha256(fresh("x").encode()).hexdigest()
        link = waiting.wire.call("GET", f"/templates/{waiting.template}/files/{key}").json()
        other = hashlib.sha256(fresh("y").encode()).hexdigest()
        store = waiting.wire_of(link["url"])
        forged = path_of(link["url"]).replace(key, other)
        assert forged != path_of(link["url"])
        got = store.call("PUT", forged, tarball(("f", b"x")), with_key=False)
        assert got.status == 403
        bare = path_of(link["url"]).split("?")[0]
        assert bare != path_of(link["url"])
        assert store.call("PUT", bare, b"x", with_key=False).status == 403
        present = waiting.wire.call("GET", f"/templates/{waiting.template}/files/{other}").json()
        assert present["present"] is False

    def test_an_upload_cut_short_leaves_nothing(self, waiting: Order) -> None:
        key = hashlib.sha256(fresh("x").encode()).hexdigest()
        path = f"/templates/{waiting.template}/files/{key}"
        link = waiting.wire.call("GET", path).json()
        files = Path(os.environ["CLOCHE_DATA"]) / "files"
        with waiting.wire_of(link["url"]).open() as peer:
            head = f"PUT {path_of(link['url'])} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
            peer.sendall(head.encode() + b"y" * 500)
            eventually(lambda: below(files, f"{key}.new-*"))
        eventually(lambda: not below(files, f"{key}*"), state=lambda: below(files, f"{key}*"))
        assert waiting.wire.call("GET", path).json()["present"] is False

    def test_a_large_file_streams_through(self, wire: Wire) -> None:
        """64 MiB that do not compress; read back in a step."""
        body = hashlib.shake_256(fresh("x").encode()).digest(64 << 20)
        build = Order(wire, fresh("large")).request()
        key = build.upload(tarball(("big", body), compressed=False))
        build.start(
            step("COPY", "big", "/home/user/big", "", "", filesHash=key),
            run("echo sum=$(sha256sum < ~/big | cut -d' ' -f1)"),
        ).ready()
        assert any(hashlib.sha256(body).hexdigest() in line for line in build.log())


class TestStarting:
    @pytest.mark.parametrize(
        "recipe",
        [
            b"{",
            b"[]",
            b'"x"',
            {"steps": "none", "fromTemplate": "base"},
            {"steps": [7], "fromTemplate": "base"},
            {"steps": [{"args": []}], "fromTemplate": "base"},
            {"steps": [{"type": "RUN", "args": [7]}], "fromTemplate": "base"},
            {"fromTemplate": 7},
            {"startCmd": 7, "fromTemplate": "base"},
        ],
        ids=str,
    )
    def test_bodies_that_are_no_recipe(self, waiting: Order, recipe: object) -> None:
        path = f"/v2/templates/{waiting.template}/builds/{waiting.build}"
        headers = {"Content-Type": "application/json"}
        got = waiting.wire.call("POST", path, recipe, headers)
        assert code(got) == (400, 400), got.body
        assert waiting.status()["status"] == "waiting"

    def test_both_sources_or_none(self, wire: Wire) -> None:
        for recipe in ({"steps": []}, {"steps": [], "fromImage": "x", "fromTemplate": "base"}):
            build = Order(wire, fresh("source")).request()
            assert build.try_start(recipe).status == 400

    def test_credentials_of_an_unknown_kind(self, wire: Wire) -> None:
        build = Order(wire, fresh("pigeon")).request()
        recipe = {"steps": [], "fromImage": "127.0.0.1:9/x", "fromImageRegistry": {"type": "carrier pigeon"}}
        got = build.try_start(recipe)
        assert got.status == 400 or build.failed()["step"] == "base"

    def test_ids_that_lead_nowhere(self, waiting: Order) -> None:
        wire = waiting.wire
        recipe = {"steps": [], "fromTemplate": "base"}
        assert code(wire.call("POST", f"/v2/templates/{waiting.template}/builds/x", recipe)) == (400, 400)
        path = f"/v2/templates/{waiting.template}/builds/{uuid.uuid4()}"
        assert code(wire.call("POST", path, recipe)) == (404, 404)
        path = f"/v2/templates/{'a' * 20}/builds/{waiting.build}"
        assert code(wire.call("POST", path, recipe)) == (404, 404)

    def test_a_build_starts_once(self, done: Order) -> None:
        assert code(done.try_start({"steps": [], "fromTemplate": "base"})) == (400, 400)

    def test_another_teams_build_can_neither_be_started_nor_seen(self, waiting: Order, stranger: Wire) -> None:
        path = f"/v2/templates/{waiting.template}/builds/{waiting.build}"
        assert stranger.call("POST", path, {"steps": [], "fromTemplate": "base"}).status == 403
        path = f"/templates/{waiting.template}/builds/{waiting.build}/status"
        assert stranger.call("GET", path).status == 403

    def test_every_build_route_wants_a_key(self, waiting: Order) -> None:
        wire = waiting.wire
        for method, path in (
            ("POST", "/v3/templates"),
            ("POST", f"/v2/templates/{waiting.template}/builds/{waiting.build}"),
            ("GET", f"/templates/{waiting.template}/builds/{waiting.build}/status"),
            ("GET", f"/templates/{waiting.template}/files/{'0' * 64}"),
            ("POST", "/templates/tags"),
        ):
            got = wire.call(method, path, {} if method == "POST" else None, with_key=False)
            assert code(got) == (401, 401)

    def test_straight_after_the_start_it_is_building(self, wire: Wire) -> None:
        build = order(wire, fresh("now"), run("sleep 0.5"))
        assert build.status()["status"] == "building"
        build.ready()

    def test_an_empty_recipe_is_the_base_itself(self, wire: Wire) -> None:
        build = order(wire, fresh("empty")).ready()
        box = build.box()
        try:
            assert box.run("whoami")[1] == "user\n"
        finally:
            box.kill()


class TestStatus:
    def test_a_build_that_waits(self, waiting: Order) -> None:
        now = waiting.status()
        assert (now["status"], now["logs"], now["logEntries"]) == ("waiting", [], [])
        assert (now["templateID"], now["buildID"]) == (waiting.template, waiting.build)
        assert "reason" not in now

    def test_pages_of_the_log(self, done: Order) -> None:
        whole: list[dict] = []
        while page := done.status(f"?logsOffset={len(whole)}")["logEntries"]:
            assert len(page) <= 100
            whole += page
        assert len(whole) > 250
        assert all({"timestamp", "message", "level"} <= set(entry) for entry in whole)
        stamps = [entry["timestamp"] for entry in whole]
        assert stamps == sorted(stamps)
        printed = [e["message"].rsplit("n=", 1)[1] for e in whole if "]: n=" in e["message"]]
        assert printed == [str(n) for n in range(1, 251)]
        middle = done.status("?logsOffset=40&limit=7")["logEntries"]
        assert middle == whole[40:47]
        assert done.status("?logsOffset=999999")["logEntries"] == []

    def test_the_log_is_filtered_by_level(self, done: Order) -> None:
        assert done.status("?level=error")["logEntries"] == []
        assert len(done.status("?level=debug")["logEntries"]) == 100

    @pytest.mark.parametrize("query", ["?logsOffset=-1", "?logsOffset=x", "?limit=0", "?limit=101", "?level=loud"])
    def test_queries_that_make_no_sense(self, done: Order, query: str) -> None:
        path = f"/templates/{done.template}/builds/{done.build}/status{query}"
        assert code(done.wire.call("GET", path)) == (400, 400)

    def test_builds_that_are_not_there(self, done: Order) -> None:
        for build in (str(uuid.uuid4()), "x"):
            got = done.wire.call("GET", f"/templates/{done.template}/builds/{build}/status")
            assert code(got) == (400, 400)

    def test_the_log_of_its_own(self, done: Order) -> None:
        path = f"/templates/{done.template}/builds/{done.build}/logs"
        got = done.wire.call("GET", path)
        assert got.status == 200
        assert 0 < len(got.json()["logs"]) <= 100
        assert got.json()["logs"][0] == done.status()["logEntries"][0]
        back = done.wire.call("GET", f"{path}?direction=backward&limit=5").json()["logs"]
        assert len(back) == 5
        assert "logEntries" not in got.json()
