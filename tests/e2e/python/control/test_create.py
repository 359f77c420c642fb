# SPDX-License-Identifier: Apache-2.0
"""Creating boxes: both generations of the call, every option, every refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import e2b
import pytest

from support.wire import RawBox, Wire

PATHS = ["/sandboxes", "/v2/sandboxes"]


def seconds(detail: dict[str, str]) -> float:
    ends = datetime.fromisoformat(detail["endAt"])
    return (ends - datetime.fromisoformat(detail["startedAt"])).total_seconds()


@pytest.mark.parametrize("path", PATHS)
def test_the_answer_has_every_key(wire: Wire, path: str) -> None:
    box = wire.create(path=path)
    try:
        made = box.made
        assert re.fullmatch(r"i[a-z0-9]{20}", made["sandboxID"])
        assert made["clientID"]
        assert made["templateID"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", made["envdVersion"])
        assert made["envdAccessToken"]
        assert made.get("trafficAccessToken") is None
        assert box.agent("GET", "/health").status == 204
        assert box.run("echo ready")[1] == "ready\n"
    finally:
        box.kill()


def test_the_generations_have_their_own_defaults(wire: Wire) -> None:
    first = RawBox(wire, wire.call("POST", "/sandboxes", {"templateID": "base"}).json())
    second = RawBox(wire, wire.call("POST", "/v2/sandboxes", {"templateID": "base"}).json())
    try:
        assert "envdAccessToken" not in first.made
        assert second.made["envdAccessToken"]
        lives = [
            seconds(wire.call("GET", f"/sandboxes/{box.id}").json()) for box in (first, second)
        ]
        assert lives[0] == pytest.approx(15, abs=1)
        assert lives[1] == pytest.approx(300, abs=1)
        assert first.port(49983, "GET", "/files?path=/etc/hostname").status == 200
        assert second.port(49983, "GET", "/files?path=/etc/hostname").status == 401
    finally:
        first.kill()
        second.kill()


def test_what_was_asked_is_told_back(wire: Wire) -> None:
    box = wire.create(
        timeout=77,
        metadata={"who": "me", "a b": "x&y=z"},
        allow_internet_access=False,
        autoPause=False,
        unknownKey={"nested": [1]},
    )
    try:
        detail = wire.call("GET", f"/sandboxes/{box.id}").json()
        assert detail["metadata"] == {"who": "me", "a b": "x&y=z"}
        assert detail["allowInternetAccess"] is False
        assert detail["lifecycle"] == {"autoResume": False, "onTimeout": "kill"}
        assert detail["state"] == "running"
        assert seconds(detail) == pytest.approx(77, abs=1)
        assert detail["cpuCount"] >= 1
        assert detail["memoryMB"] >= 128
        assert detail["diskSizeMB"] > 0
        assert detail["envdVersion"] == box.made["envdVersion"]
        assert detail["templateID"] == box.made["templateID"]
        assert detail["alias"] == "base"
        assert [key for key, value in detail.items() if value is None and key in
                ("network", "lifecycle", "metadata", "volumeMounts")] == []  # fmt: skip
    finally:
        box.kill()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "options, status",
    [
        ({"templateID": "no-such-template-here"}, 404),
        ({"templateID": "base:no-such-tag"}, 404),
        ({"templateID": "/x"}, 400),
        ({"templateID": "x:"}, 400),
        ({"templateID": "sp ace"}, 400),
        ({"templateID": 7}, 400),
        ({}, 400),
        ({"templateID": "base", "timeout": 0}, 400),
        ({"templateID": "base", "timeout": -1}, 400),
        ({"templateID": "base", "timeout": 72 * 3600}, 400),
        ({"templateID": "base", "timeout": "60"}, 400),
        ({"templateID": "base", "metadata": {"a": 1}}, 400),
        ({"templateID": "base", "metadata": []}, 400),
        ({"templateID": "base", "autoPauseMemory": False}, 400),
        ({"templateID": "base", "network": {"denyOut": ["example.com"]}}, 400),
        ({"templateID": "base", "network": {"allowOut": ["example.com"]}}, 400),
    ],
)
def test_a_create_that_makes_no_sense_is_refused_with_code_and_message(
    wire: Wire, path: str, options: dict, status: int
) -> None:
    got = wire.call("POST", path, options)
    assert got.status == status, got.body
    assert got.json()["code"] == status
    assert got.json()["message"]


def test_an_unknown_template_is_named(wire: Wire) -> None:
    got = wire.call("POST", "/sandboxes", {"templateID": "no-such-template"})
    assert "no-such-template" in got.json()["message"]
    got = wire.call("POST", "/sandboxes", {"templateID": "base:ghost"})
    assert "ghost" in got.json()["message"]


def test_closed_traffic_needs_a_secured_box(wire: Wire) -> None:
    body = {"templateID": "base", "network": {"allowPublicTraffic": False}}
    got = wire.call("POST", "/sandboxes", body)
    assert got.status == 400
    assert got.json()["message"] == (
        "You cannot create a sandbox without public access unless you enable "
        "secure envd access via 'secure' flag."
    )


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b'"base"', b'{"templateID":'])
def test_bodies_that_are_no_request(wire: Wire, body: bytes) -> None:
    got = wire.call("POST", "/sandboxes", body, {"Content-Type": "application/json"})
    assert (got.status, got.json()["code"]) == (400, 400)


def test_names_resolve_in_every_spelling(wire: Wire) -> None:
    by_alias = wire.create("base")
    by_id = wire.create(by_alias.made["templateID"])
    by_tag = wire.create("base:default")
    try:
        assert by_id.made["templateID"] == by_alias.made["templateID"]
        assert by_tag.made["templateID"] == by_alias.made["templateID"]
    finally:
        for box in (by_alias, by_id, by_tag):
            box.kill()


@pytest.fixture
def made() -> Iterator[list[e2b.Sandbox]]:
    boxes: list[e2b.Sandbox] = []
    yield boxes
    for box in boxes:
        box.kill()


def test_the_sdk_sees_what_it_set(made: list[e2b.Sandbox], unique: str) -> None:
    made.append(e2b.Sandbox.create(timeout=120, metadata={"run": unique}))
    info = made[0].get_info()
    assert info.sandbox_id == made[0].sandbox_id
    assert info.metadata == {"run": unique}
    assert info.name == "base"
    assert info.state is e2b.SandboxState.RUNNING
    assert (info.end_at - info.started_at).total_seconds() == pytest.approx(120, abs=1)
    assert info.started_at.tzinfo is not None
    assert info.lifecycle == {"on_timeout": "kill", "auto_resume": False}


def test_an_insecure_box_of_the_sdk_has_no_token(made: list[e2b.Sandbox]) -> None:
    made.append(e2b.Sandbox.create(timeout=60, secure=False))
    assert made[0].commands.run("echo open").stdout == "open\n"
    assert made[0].files.read("/etc/hostname")
