# SPDX-License-Identifier: Apache-2.0
"""Metrics and logs of a box through the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from support.either import until
from support.wire import RawBox, Wire


@pytest.fixture(scope="module")
def busy(wire: Wire) -> Iterator[RawBox]:
    box = wire.create("code-interpreter-v1", timeout=200)
    box.run("echo a line for the log; echo another >&2")
    yield box
    box.kill()


async def test_metrics_of_a_running_box_are_sampled(wire: Wire, busy: RawBox) -> None:
    path = f"/sandboxes/{busy.id}/metrics"
    samples = await until(lambda: wire.call("GET", path).json(), 30, 0.5)
    sample = samples[0]
    assert set(sample) >= {
        "timestamp", "timestampUnix", "cpuCount", "cpuUsedPct",
        "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal",
    }  # fmt: skip
    assert datetime.fromisoformat(sample["timestamp"]).timestamp() == pytest.approx(
        sample["timestampUnix"], abs=1
    )
    assert 0 < sample["memUsed"] < sample["memTotal"]
    assert 0 < sample["diskUsed"] < sample["diskTotal"]


async def test_an_idle_box_is_not_exactly_idle(wire: Wire) -> None:
    """As in a virtual machine, being looked after costs a little; two digits would not show it."""
    box = wire.create(timeout=60)
    try:
        path = f"/sandboxes/{box.id}/metrics"
        samples = await until(lambda: (got := wire.call("GET", path).json())[1:] and got, 30, 0.5)
        assert all(0 < sample["cpuUsedPct"] < 50 for sample in samples), samples
    finally:
        box.kill()


def test_metrics_are_filtered_by_time(wire: Wire, busy: RawBox) -> None:
    path = f"/sandboxes/{busy.id}/metrics"
    assert wire.call("GET", f"{path}?start=1000&end=2000").json() == []
    got = wire.call("GET", f"{path}?start=2000&end=1000")
    assert (got.status, got.json()["code"]) == (400, 400)
    now = int(time.time())
    inside = wire.call("GET", f"{path}?start={now - 60}&end={now + 60}").json()
    assert all(now - 70 <= sample["timestampUnix"] <= now + 70 for sample in inside)


async def test_many_boxes_at_once(wire: Wire, busy: RawBox) -> None:
    path = f"/sandboxes/metrics?sandbox_ids={busy.id},inonexistent00000000x"
    found = await until(lambda: wire.call("GET", path).json()["sandboxes"], 30, 0.5)
    assert list(found) == [busy.id]
    many = ",".join(["x"] * 101)
    assert wire.call("GET", f"/sandboxes/metrics?sandbox_ids={many}").status == 400


async def test_logs_have_both_shapes(wire: Wire, busy: RawBox) -> None:
    def logs() -> dict | None:
        got = wire.call("GET", f"/sandboxes/{busy.id}/logs")
        assert got.status == 200
        return got.json() if got.json()["logs"] else None

    told = await until(logs, 10)
    for entry in told["logs"]:
        assert datetime.fromisoformat(entry["timestamp"])
        assert json.loads(entry["line"])["level"]
    for entry in told["logEntries"]:
        assert entry["level"] in ("debug", "info", "warn", "error")
        assert isinstance(entry["message"], str)
        assert all(isinstance(value, str) for value in entry["fields"].values())
    stamps = [entry["timestamp"] for entry in told["logs"]]
    assert stamps == sorted(stamps)
    text = json.dumps(told)
    assert "a line for the log" in text


async def test_the_second_generation_of_logs(wire: Wire, busy: RawBox) -> None:
    path = f"/v2/sandboxes/{busy.id}/logs"
    forward = wire.call("GET", f"{path}?direction=forward").json()["logs"]
    backward = wire.call("GET", path).json()["logs"]
    assert forward
    assert [entry["timestamp"] for entry in backward] == sorted(
        (entry["timestamp"] for entry in backward), reverse=True
    )
    found = wire.call("GET", f"{path}?search=a%20line%20for").json()["logs"]
    assert found
    assert all("a line for" in entry["message"] for entry in found)
    assert wire.call("GET", f"{path}?search=never-printed").json()["logs"] == []
    assert len(wire.call("GET", f"{path}?limit=1").json()["logs"]) == 1
    for bad in ("direction=sideways", "limit=1001", "level=loud"):
        assert wire.call("GET", f"{path}?{bad}").status == 400


def test_logs_page_by_time(wire: Wire, busy: RawBox) -> None:
    later = int(time.time() * 1000) + 60_000
    got = wire.call("GET", f"/sandboxes/{busy.id}/logs?start={later}")
    assert got.json()["logs"] == []
    assert wire.call("GET", f"/sandboxes/{busy.id}/logs?start=soon").status == 400


def test_logs_are_told_of_a_paused_box_and_after_the_end(wire: Wire) -> None:
    def words(name: str) -> list[str]:
        got = wire.call("GET", f"/v2/sandboxes/{name}/logs?direction=forward")
        assert got.status == 200, got.body
        return [entry["message"] for entry in got.json()["logs"]]

    box = wire.create(timeout=60)
    try:
        assert words(box.id) == []
        box.run("echo first; echo to the side >&2")
        assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert words(box.id) == ["first", "to the side"]
        assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
        box.run("seq 30000")
        box.run("echo last")
    finally:
        box.kill()
    kept = words(box.id)
    assert wire.call("GET", f"/v2/sandboxes/{box.id}/logs?level=warn").json()["logs"] == []
    newest = wire.call("GET", f"/v2/sandboxes/{box.id}/logs?limit=2").json()["logs"]
    assert [entry["message"] for entry in newest] == ["last", "30000"]
    assert len(kept) <= 1000
    assert wire.call("GET", "/sandboxes/inonexistent00000000x/logs").status == 404


def test_prometheus_metrics_are_closed_to_the_key_of_a_team(wire: Wire, busy: RawBox) -> None:
    for with_key in (True, False):
        got = wire.call("GET", "/metrics", with_key=with_key)
        assert got.status in (401, 403), got.body
        assert b"cloche_" not in got.body
