# SPDX-License-Identifier: Apache-2.0
"""Where no criu can be had, or the setting says so: boxes sleep in memory, and copies of them have files only."""

from __future__ import annotations

import e2b
import pytest

from support.paused import connect, counts_on, fork, pause, snapshot, start_counting, state
from support.server import Server
from support.wire import RawBox

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def frozen(server: Server) -> Server:
    server.stop()
    server.start("--criu", "/nowhere/criu")
    return server


def test_a_pause_stays_in_memory(frozen: Server) -> None:
    box = frozen.wire.create(timeout=300)
    start_counting(box)
    got = pause(box)
    assert (got.status, got.headers["X-Cloche-Pause-Tier"]) == (204, "frozen")
    assert connect(box).status == 201
    counts_on(box)
    box.kill()


def test_a_snapshot_keeps_files_and_says_so(frozen: Server) -> None:
    box = frozen.wire.create(timeout=300)
    box.run("echo kept > ~/kept")
    start_counting(box)
    got = snapshot(box, name="files-only")
    assert got.status == 201, got.text
    assert got.json()["memory"] is False
    counts_on(box)
    listed = frozen.wire.call("GET", "/snapshots").json()
    assert [(one["snapshotID"], one["memory"]) for one in listed] == [(got.json()["snapshotID"], False)]
    made = frozen.wire.create(got.json()["snapshotID"], timeout=300)
    assert made.run("cat ~/kept; pgrep -f '[/]tmp/next' || echo nothing runs")[1] == "kept\nnothing runs\n"
    for one in (box, made):
        one.kill()
    assert (
        frozen.wire.call(
            "DELETE", "/templates/" + got.json()["snapshotID"].replace("/", "%2F").replace(":", "%3A")
        ).status
        == 204
    )
    assert "files only" in frozen.log()


def test_forks_have_the_files_and_begin_anew(frozen: Server) -> None:
    box = frozen.wire.create(timeout=300, metadata={"of": "source"})
    box.run("echo kept > ~/kept")
    start_counting(box)
    got = fork(box, count=2, timeout=100)
    assert got.status == 201, got.text
    assert [entry["memory"] for entry in got.json()] == [False, False]
    for entry in got.json():
        one = RawBox(frozen.wire, entry["sandbox"])
        assert (
            one.run("cat ~/kept; echo mine > ~/kept; pgrep -f '[/]tmp/next' || echo nothing runs")[1]
            == "kept\nnothing runs\n"
        )
        assert one.run("echo $E2B_SANDBOX_ID")[1] == f"{one.id}\n"
        assert state(one) == "running"
        one.kill()
    assert box.run("cat ~/kept")[1] == "kept\n"
    counts_on(box)
    options = {"api_key": frozen.key, "api_url": frozen.url, "sandbox_url": frozen.url}
    for made in e2b.Sandbox.connect(box.id, **options).fork(count=2, timeout=60):
        assert not isinstance(made, Exception), made
        assert made.files.read("kept") == "kept\n"
        made.kill()
    box.kill()
