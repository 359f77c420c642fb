# SPDX-License-Identifier: Apache-2.0
"""Filesystem-only sleep: files stay, processes and memory do not, and nothing wakes it but a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import e2b
import e2b_code_interpreter as interpreter
import pytest
import pytest_asyncio
from e2b.api.client.api.sandboxes import get_sandboxes_sandbox_id
from e2b.api.client_sync import get_api_client

from support.either import Either
from support.paused import connect, detail, pause, state, text_of
from support.waiting import eventually
from support.wire import RawBox, Wire


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120, envVars={"GIVEN": "yes"}, metadata={"kept": "yes"})
    yield made
    made.kill()


def mark(box: RawBox) -> str:
    """Things that stay and things that go; returns the boot id."""
    box.run("echo kept > ~/kept; mkdir -p ~/d; echo deep > ~/d/f; setsid sleep 777 >/dev/null 2>&1 </dev/null &")
    return box.run("cat /proc/sys/kernel/random/boot_id")[1]


def check_cold(box: RawBox, token: str) -> None:
    assert box.run("cat ~/kept ~/d/f")[1] == "kept\ndeep\n"
    assert box.run("pgrep -x sleep")[0] == 1
    assert box.run("echo $GIVEN; whoami; pwd")[1] == "yes\nuser\n/home/user\n"
    assert box.token == token
    assert detail(box)["metadata"] == {"kept": "yes"}


def test_a_pause_without_memory(box: RawBox) -> None:
    born = mark(box)
    assert pause(box, memory=False).status == 204
    assert state(box) == "paused"
    assert box.agent("GET", "/health").status == 502
    assert pause(box).status == 409
    got = connect(box)
    assert got.status == 201, got.body
    check_cold(box, got.json()["envdAccessToken"])
    assert box.run("cat /proc/sys/kernel/random/boot_id")[1] != born


def test_connecting_without_memory_boots_cold(box: RawBox) -> None:
    mark(box)
    assert pause(box).status == 204
    got = connect(box, memory=False)
    assert got.status == 201, got.body
    check_cold(box, got.json()["envdAccessToken"])
    assert connect(box, memory=False).status == 200, "no meaning on a running box"


def test_the_pause_mode_is_told(wire: Wire, box: RawBox) -> None:
    assert "pauseMode" not in detail(box)
    for body, mode in (({}, "full"), ({"memory": True}, "full"), ({"memory": False}, "filesystem")):
        assert pause(box, **body).status == 204
        assert detail(box)["pauseMode"] == mode
        raw = get_sandboxes_sandbox_id.sync(box.id, client=get_api_client(e2b.ConnectionConfig()))
        assert raw.pause_mode.value == mode, "as the generated client reads it"
        listed = wire.call("GET", "/v2/sandboxes?state=paused").json()
        assert ["pauseMode" in item for item in listed if item["sandboxID"] == box.id] == [False]
        assert connect(box).status == 201
        assert "pauseMode" not in detail(box)


def test_the_old_resume_call(wire: Wire, box: RawBox) -> None:
    mark(box)
    assert pause(box, memory=False).status == 204
    got = wire.call("POST", f"/sandboxes/{box.id}/resume", {"timeout": 60})
    assert got.status == 201, got.body
    check_cold(box, got.json()["envdAccessToken"])


def test_it_is_never_woken_by_traffic(wire: Wire) -> None:
    box = wire.create(timeout=60, autoPause=True, autoResume={"enabled": True})
    try:
        assert pause(box, memory=False).status == 204
        got = box.agent("GET", "/health")
        assert (got.status, got.json()["message"]) == (502, "The sandbox was not found")
        assert state(box) == "paused"
        assert connect(box).status == 201
    finally:
        box.kill()


def test_time_up_without_memory(wire: Wire) -> None:
    box = wire.create(
        timeout=60, autoPause=True, autoPauseMemory=False, envVars={"GIVEN": "yes"}, metadata={"kept": "yes"}
    )
    try:
        mark(box)
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
        eventually(lambda: state(box) == "paused", 8)
        got = connect(box, 60)
        assert got.status == 201
        check_cold(box, got.json()["envdAccessToken"])
    finally:
        box.kill()


def test_a_cold_box_can_sleep_with_memory_again(box: RawBox) -> None:
    assert pause(box, memory=False).status == 204
    assert connect(box).status == 201
    box.run("setsid sleep 888 >/dev/null 2>&1 </dev/null &")
    assert pause(box).status == 204
    assert connect(box).status == 201
    assert box.run("pgrep -ax sleep")[1].split()[-1] == "888"


def test_kernels_start_anew_after_a_cold_resume(wire: Wire) -> None:
    box = wire.create("code-interpreter-v1", timeout=120)
    try:
        text_of(box.execute("x = 1; open('/tmp/of-cell', 'w').write('kept')"))
        assert pause(box, memory=False).status == 204
        assert connect(box).status == 201
        events = box.execute("x")
        assert any(event["type"] == "error" and event["name"] == "NameError" for event in events), events
        assert text_of(box.execute("1 + 1")) == "2"
    finally:
        box.kill()


@pytest_asyncio.fixture(params=["sync", "async"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    made = e2b.Sandbox.create(timeout=60) if request.param == "sync" else await e2b.AsyncSandbox.create(timeout=60)
    box = Either(made)
    yield box
    await box.kill()


async def test_the_sdk_drops_memory(either: Either) -> None:
    await either.files.write("kept.txt", "kept")
    running = await either.commands.run("sleep 999", background=True, timeout=0)
    assert await either.pause(keep_memory=False) is True
    assert await either.is_running() is False
    await either.connect(timeout=60)
    assert await either.files.read("kept.txt") == "kept"
    assert running.pid not in [p.pid for p in await either.commands.list() if "sleep 999" in " ".join(p.args)]
    assert (await either.commands.run("pgrep -fx 'sleep 999' || echo nobody")).stdout == "nobody\n"


def test_the_sdks_lifecycle_without_memory() -> None:
    box = interpreter.Sandbox.create(timeout=60, lifecycle={"on_timeout": {"action": "pause", "keep_memory": False}})
    try:
        box.files.write("/tmp/kept.txt", "kept")
        box.files.write("kept.txt", "kept")
        box.run_code("x = 1")
        box.set_timeout(0)
        eventually(lambda: box.get_info().state.value == "paused", 8)
        box.connect(timeout=60)
        assert box.files.read("kept.txt") == "kept"
        assert box.run_code("x").error.name == "NameError"
    finally:
        box.kill()
