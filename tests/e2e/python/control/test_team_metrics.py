# SPDX-License-Identifier: Apache-2.0
"""Metrics of a team: how many sandboxes it had at once, and how many it started per second."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from support.server import Server, own_server
from support.waiting import eventually
from support.wire import Wire

BOXES = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as made:
        yield made


@pytest.fixture(scope="module")
def team(server: Server) -> str:
    """Its id; it had three boxes at once and has one now."""
    wire = server.wire
    team = wire.call("GET", "/teams").json()[0]["teamID"]
    assert wire.call("GET", f"/teams/{team}/metrics").json() == []
    boxes = [wire.create(timeout=120) for _ in range(BOXES)]
    for box in boxes[1:]:
        box.kill()
    return team


def test_what_a_team_has_is_told(server: Server, team: str) -> None:
    samples = server.wire.call("GET", f"/teams/{team}/metrics").json()
    keys = {"timestamp", "timestampUnix", "concurrentSandboxes", "sandboxStartRate"}
    assert samples
    assert all(set(sample) == keys for sample in samples)
    assert max(sample["concurrentSandboxes"] for sample in samples) == BOXES
    assert max(sample["sandboxStartRate"] for sample in samples) > 0
    for sample in samples:
        told = datetime.fromisoformat(sample["timestamp"]).timestamp()
        assert told == pytest.approx(sample["timestampUnix"], abs=1)


def test_the_most_of_each(server: Server, team: str) -> None:
    path = f"/teams/{team}/metrics/max?metric="
    most = server.wire.call("GET", path + "concurrent_sandboxes").json()
    assert set(most) == {"timestamp", "timestampUnix", "value"}
    assert most["value"] == BOXES
    assert abs(most["timestampUnix"] - time.time()) < 120
    assert server.wire.call("GET", path + "sandbox_start_rate").json()["value"] > 0
    past = "&start=1000&end=2000"
    assert server.wire.call("GET", path + "concurrent_sandboxes" + past).json()["value"] == 0
    for bad in ("", "boxes", "concurrent_sandboxes&start=2&end=1", "concurrent_sandboxes&start=x"):
        assert server.wire.call("GET", path + bad).status == 400


def test_a_range_chooses(server: Server, team: str) -> None:
    path = f"/teams/{team}/metrics"
    now = int(time.time())
    assert server.wire.call("GET", f"{path}?start=1000&end=2000").json() == []
    assert server.wire.call("GET", f"{path}?start={now - 300}&end={now + 60}").json()
    assert server.wire.call("GET", f"{path}?start=2000&end=1000").status == 400


def test_another_team_is_refused(server: Server, team: str) -> None:
    other = "00000000-0000-4000-8000-000000000000"
    for rest in ("", "/max?metric=concurrent_sandboxes"):
        got = server.wire.call("GET", f"/teams/{other}/metrics{rest}")
        assert (got.status, got.json()["code"]) == (403, 403)
        assert Wire(server.wire.url, None).call("GET", f"/teams/{team}/metrics{rest}").status == 401


def test_what_was_written_outlasts_the_server(server: Server, team: str) -> None:
    """The interval in which there were three has to end first, which takes up to half a minute."""
    path = f"/teams/{team}/metrics"

    def written() -> bool:
        samples = server.wire.call("GET", path).json()
        return len(samples) > 1 and samples[-1]["concurrentSandboxes"] == 1

    eventually(written, 60, state=lambda: server.wire.call("GET", path).body)
    server.signal(signal.SIGTERM)
    server.start()
    most = server.wire.call("GET", f"{path}/max?metric=concurrent_sandboxes").json()
    assert most["value"] == BOXES
    samples = server.wire.call("GET", path).json()
    assert samples[-1]["concurrentSandboxes"] == 1
