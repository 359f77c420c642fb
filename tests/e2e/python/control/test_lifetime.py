# SPDX-License-Identifier: Apache-2.0
"""Timeouts, connect, refresh, kill: the clock of a box."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import e2b
import pytest

from support.either import until
from support.wire import RawBox, Wire


@pytest.fixture(scope="module")
def living(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=100)
    yield box
    box.kill()


def left(wire: Wire, box: RawBox) -> float:
    end = wire.call("GET", f"/sandboxes/{box.id}").json()["endAt"]
    return (datetime.fromisoformat(end) - datetime.now(UTC)).total_seconds()


def test_timeout_sets_shorter_and_longer(wire: Wire, living: RawBox) -> None:
    for seconds in (500, 50, 200):
        got = wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": seconds})
        assert (got.status, got.body) == (204, b"")
        assert left(wire, living) == pytest.approx(seconds, abs=1.5)


def test_connect_never_shortens_a_boxs_life(wire: Wire, living: RawBox) -> None:
    wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": 200})
    for path in ("/sandboxes", "/v2/sandboxes"):
        got = wire.call("POST", f"{path}/{living.id}/connect", {"timeout": 20})
        assert got.status == 200
        assert got.json()["sandboxID"] == living.id
        assert got.json()["envdAccessToken"] == living.token
        assert left(wire, living) == pytest.approx(200, abs=2)
    wire.call("POST", f"/v2/sandboxes/{living.id}/connect", {"timeout": 400})
    assert left(wire, living) == pytest.approx(400, abs=1.5)


def test_the_second_connect_has_a_default(wire: Wire, living: RawBox) -> None:
    wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": 60})
    assert wire.call("POST", f"/v2/sandboxes/{living.id}/connect").status == 200
    assert left(wire, living) == pytest.approx(300, abs=1.5)
    assert wire.call("POST", f"/sandboxes/{living.id}/connect", {}).status == 400


def test_refresh_only_extends_a_boxs_life(wire: Wire, living: RawBox) -> None:
    wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": 60})
    path = f"/sandboxes/{living.id}/refreshes"
    assert wire.call("POST", path, {"duration": 30}).status == 204
    assert left(wire, living) == pytest.approx(60, abs=1.5)
    assert wire.call("POST", path, {"duration": 120}).status == 204
    assert left(wire, living) == pytest.approx(120, abs=1.5)
    assert wire.call("POST", path).status == 204
    assert wire.call("POST", path, {"duration": 3601}).status == 400


@pytest.mark.parametrize("body", [{"timeout": -1}, {"timeout": "5"}, {}, {"timeout": None}])
def test_a_timeout_that_is_no_positive_number_is_refused(wire: Wire, living: RawBox, body: dict) -> None:
    got = wire.call("POST", f"/sandboxes/{living.id}/timeout", body)
    assert (got.status, got.json()["code"]) == (400, 400)


def test_too_long_is_refused_or_clamped(wire: Wire, living: RawBox) -> None:
    too_long = {"timeout": 72 * 3600}
    assert wire.call("POST", f"/sandboxes/{living.id}/connect", too_long).status == 400
    assert wire.call("POST", f"/sandboxes/{living.id}/timeout", too_long).status == 204
    assert left(wire, living) < 72 * 3600
    wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": 100})


def test_resume_of_a_running_box_conflicts(wire: Wire, living: RawBox) -> None:
    got = wire.call("POST", f"/sandboxes/{living.id}/resume", {"timeout": 60})
    assert (got.status, got.json()["code"]) == (409, 409)


async def test_time_is_really_up(wire: Wire) -> None:
    asked = time.monotonic()
    box = wire.create(timeout=4)
    assert box.agent("GET", "/health").status == 204

    def gone() -> bool:
        return wire.call("GET", f"/sandboxes/{box.id}").status == 404

    await until(gone)
    assert 3.9 <= time.monotonic() - asked <= 60
    assert box.agent("GET", "/health").status == 502
    assert wire.call("DELETE", f"/sandboxes/{box.id}").status == 404


async def test_zero_ends_it_at_once(wire: Wire) -> None:
    box = wire.create(timeout=100)
    assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
    await until(lambda: box.agent("GET", "/health").status == 502, 3)
    await until(lambda: wire.call("GET", f"/sandboxes/{box.id}").status == 404, 3)


def test_kill_is_final_for_every_call(wire: Wire) -> None:
    box = wire.create()
    assert box.kill() == 204
    calls = [
        ("GET", f"/sandboxes/{box.id}", None),
        ("DELETE", f"/sandboxes/{box.id}", None),
        ("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 10}),
        ("POST", f"/sandboxes/{box.id}/connect", {"timeout": 10}),
        ("POST", f"/v2/sandboxes/{box.id}/connect", None),
        ("POST", f"/sandboxes/{box.id}/resume", {}),
        ("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 10}),
        ("POST", f"/sandboxes/{box.id}/pause", {}),
        ("PUT", f"/sandboxes/{box.id}/network", {}),
    ]
    for method, path, body in calls:
        got = wire.call(method, path, body)
        assert got.status == 404, (method, path, got.body)
        assert got.json()["code"] == 404
        assert int(got.headers["Content-Length"]) > 0


def test_the_cause_of_death_is_told(wire: Wire) -> None:
    box = wire.create()
    box.kill()
    message = wire.call("GET", f"/sandboxes/{box.id}").json()["message"]
    assert "doesn't exist or you don't have access to it" in message
    assert "kill" in message.lower()


def test_the_sdks_words_for_it() -> None:
    assert e2b.Sandbox.kill("nonexistingsandbox") is False
    with pytest.raises(e2b.SandboxNotFoundException):
        e2b.Sandbox.connect("inonexistent00000000x")
    with pytest.raises(e2b.NotFoundException):
        e2b.Sandbox.get_info("inonexistent00000000x")
    with pytest.raises(e2b.NotFoundException):
        e2b.Sandbox.set_timeout("inonexistent00000000x", 10)


def test_the_sdk_moves_the_end() -> None:
    with e2b.Sandbox.create(timeout=60) as box:
        box.set_timeout(180)
        info = box.get_info()
        assert (info.end_at - datetime.now(UTC)).total_seconds() == pytest.approx(180, abs=1.5)
        box.connect(timeout=30)
        assert box.get_info().end_at == info.end_at
        again = e2b.Sandbox.connect(box.sandbox_id, timeout=30)
        assert again.commands.run("echo same").stdout == "same\n"


def test_ids_of_odd_forms(wire: Wire, living: RawBox) -> None:
    legacy = f"{living.id}-6532622b"
    assert wire.call("GET", f"/sandboxes/{legacy}").json()["sandboxID"] == living.id
    got = wire.call("GET", f"/sandboxes/{living.id}-a-b")
    assert (got.status, got.json()["message"]) == (400, "Invalid sandbox ID")
    for odd in ("UPPER", "a%2Fb", "..", "%00", "x" * 300):
        got = wire.call("GET", f"/sandboxes/{odd}")
        assert got.status in (400, 404), odd
        assert got.json()["code"] == got.status
