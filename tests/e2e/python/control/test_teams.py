# SPDX-License-Identifier: Apache-2.0
"""Teams: their limits hold, and they do not see each other."""

from __future__ import annotations

import e2b
import pytest

from support.commands import cloche
from support.wire import Wire


@pytest.fixture
def team(unique: str) -> str:
    return cloche("team", "create", f"Team {unique}")


@pytest.fixture
def other(wire: Wire, team: str) -> Wire:
    return Wire(wire.url, cloche("key", "create", "for a test", "--team", team))


def test_a_team_is_listed_with_its_limits(team: str) -> None:
    cloche("team", "limit", team, "--boxes", "7", "--timeout", "90", "--isolation", "process")
    line = next(row for row in cloche("team", "list").splitlines() if row.startswith(team))
    running, boxes, creates, timeout, *others, isolation = line.split()[-12:]
    assert (running, boxes, creates, timeout, isolation) == ("0", "7", "-", "90", "process")
    assert others == ["-"] * 7
    cloche("team", "limit", team, "--isolation", "default")


def test_running_boxes_are_limited_and_pauses_free_a_place(other: Wire, team: str) -> None:
    cloche("team", "limit", team, "--boxes", "2")
    boxes = [other.create(timeout=60) for _ in range(2)]
    try:
        got = other.call("POST", "/sandboxes", {"templateID": "base"})
        assert (got.status, got.json()["code"]) == (429, 429)
        assert "(2)" in got.json()["message"]
        assert "Retry-After" not in got.headers
        assert got.headers["Should-Retry"] == "false", "no repeat frees a place"
        with pytest.raises(e2b.RateLimitException):
            e2b.Sandbox.create(template="base", api_key=other.key)
        assert other.call("POST", f"/sandboxes/{boxes[0].id}/pause").status == 204
        boxes.append(other.create(timeout=60))
        path = f"/sandboxes/{boxes[0].id}/connect"
        assert other.call("POST", path, {"timeout": 60}).status == 429
        boxes.pop().kill()
        assert other.call("POST", path, {"timeout": 60}).status == 201
    finally:
        for box in boxes:
            box.kill()


def test_creates_per_second_are_limited(other: Wire, team: str) -> None:
    cloche("team", "limit", team, "--creates", "1")
    made, refused = [], None
    try:
        for _ in range(4):
            got = other.call("POST", "/sandboxes", {"templateID": "base", "timeout": 30})
            if got.status == 429:
                refused = got
                break
            made.append(got.json()["sandboxID"])
        assert refused is not None
        assert len(made) >= 2
        assert refused.headers["Retry-After"].isdigit()
        assert refused.json()["code"] == 429
    finally:
        for name in made:
            other.call("DELETE", f"/sandboxes/{name}")


def test_the_longest_life_is_the_teams(other: Wire, team: str) -> None:
    cloche("team", "limit", team, "--timeout", "3600")
    got = other.call("POST", "/sandboxes", {"templateID": "base", "timeout": 3601})
    assert got.status == 400
    assert "1 hours" in got.json()["message"]
    box = other.create(timeout=60)
    try:
        assert other.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 9999}).status == 204
    finally:
        box.kill()


def test_a_box_that_is_too_large_is_refused(other: Wire, team: str) -> None:
    cloche("team", "limit", team, "--memory", "1")
    got = other.call("POST", "/sandboxes", {"templateID": "base"})
    assert got.status == 400
    assert "memory" in got.json()["message"]


def test_teams_do_not_see_each_other(wire: Wire, other: Wire) -> None:
    box = wire.create(timeout=60)
    try:
        for method, path in (
            ("GET", f"/sandboxes/{box.id}"),
            ("DELETE", f"/sandboxes/{box.id}"),
            ("POST", f"/sandboxes/{box.id}/pause"),
            ("GET", f"/sandboxes/{box.id}/logs"),
            ("GET", f"/sandboxes/{box.id}/metrics"),
        ):
            assert other.call(method, path).status == 404, (method, path)
        assert other.call("GET", "/v2/sandboxes").json() == []
        batch = other.call("GET", f"/sandboxes/metrics?sandbox_ids={box.id}")
        assert batch.json() == {"sandboxes": {}}
        assert box.agent("GET", "/health").status == 204
    finally:
        box.kill()


def test_a_key_names_its_team(wire: Wire, other: Wire, team: str) -> None:
    teams = other.call("GET", "/teams").json()
    assert [item["teamID"] for item in teams] == [team]
    assert teams[0]["isDefault"] is True
    assert teams[0]["apiKey"] == other.key
    bearer = {"Authorization": f"Bearer {other.key}", "X-Team-ID": team}
    got = wire.call("GET", "/api-keys", headers=bearer, with_key=False)
    assert got.status == 200
    assert [item["name"] for item in got.json()] == ["for a test"]
    bearer["X-Team-ID"] = "00000000-0000-4000-8000-000000000001"
    assert wire.call("GET", "/api-keys", headers=bearer, with_key=False).status == 403


def test_the_sdk_calls_it_a_rate_limit(other: Wire, team: str) -> None:
    cloche("team", "limit", team, "--boxes", "1")
    box = e2b.Sandbox.create(api_key=other.key, timeout=60)
    try:
        with pytest.raises(e2b.RateLimitException):
            e2b.Sandbox.create(api_key=other.key, timeout=60)
    finally:
        box.kill()
