# SPDX-License-Identifier: Apache-2.0
"""What runs while a box falls asleep: cells, streams, watches, requests that wake it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import e2b
import e2b_code_interpreter as interpreter
import pytest

from support.paused import (
    connect,
    counts_on,
    detail,
    moment,
    pause,
    pause_and_resume,
    start_counting,
    start_tracing,
    state,
    text_of,
)
from support.waiting import eventually
from support.wire import RawBox, Wire


@pytest.fixture
def cell() -> Iterator[interpreter.Sandbox]:
    made = interpreter.Sandbox.create(timeout=120)
    yield made
    made.kill()


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120)
    yield made
    made.kill()


def test_a_cell_goes_on_where_it_was(cell: interpreter.Sandbox) -> None:
    """The client's stream is cut; the computation is not."""
    told: list[object] = []
    begun = threading.Event()

    def compute() -> None:
        try:
            cell.run_code(
                "import time\nprint('begun')\ntotal = 0\n"
                "for i in range(150):\n    total += i\n    time.sleep(0.05)\nfinished = True",
                on_stdout=lambda _: begun.set(),
            )
        except Exception as error:
            told.append(error)

    worker = threading.Thread(target=compute)
    worker.start()
    assert begun.wait(60)
    cell.pause()
    worker.join(60)
    assert told, "the stream of a paused box must not end as if all were well"
    cell.connect(timeout=60)
    got = cell.run_code("finished, total")
    assert got.text == str((True, sum(range(150)))), got.error


def test_many_pauses_in_a_row(box: RawBox) -> None:
    start_counting(box)
    last = 0
    for _ in range(4):
        pause_and_resume(box)
        now = counts_on(box)
        assert now > last
        last = now


def test_a_watch_handle_goes_on_watching(box: RawBox) -> None:
    box.run("mkdir -p /tmp/watched/sub")
    made = box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "/tmp/watched", "recursive": True})
    assert made.status == 200, made.body
    watcher = made.json()
    box.run("touch /tmp/watched/before")
    pause_and_resume(box)
    box.run("touch /tmp/watched/after /tmp/watched/sub/deep")

    seen: set[str] = set()

    def found() -> bool:
        got = box.rpc("filesystem.Filesystem/GetWatcherEvents", watcher)
        assert got.status == 200, got.body
        seen.update(event["name"] for event in got.json().get("events", []))
        return {"before", "after", "sub/deep"} <= seen

    eventually(found, 10)


def test_large_memory_and_many_processes(wire: Wire) -> None:
    box = wire.create("code-interpreter-v1", timeout=120)
    try:
        text_of(
            box.execute("import os, hashlib; blob = os.urandom(150_000_000); sum_ = hashlib.sha256(blob).hexdigest()")
        )
        box.run("for i in $(seq 60); do sleep 600 >/dev/null 2>&1 & done; sleep 0.1")
        pause_and_resume(box)
        assert text_of(box.execute("hashlib.sha256(blob).hexdigest() == sum_")) == "True"
        assert box.run("pgrep -cx sleep")[1].strip() == "60"
    finally:
        box.kill()


def test_all_kernels_at_once(wire: Wire) -> None:
    box = wire.create("code-interpreter-v1", timeout=120)
    try:
        made = {
            "python": ("v = 6", "v * 7"),
            "javascript": ("globalThis.v = 6", "v * 7"),
            "bash": ("v=6", "echo $((v * 7))"),
            "r": ("v <- 6", "v * 7"),
            "java": ("int v = 6;", "v * 7"),
        }
        for language, (before, _) in made.items():
            text_of(box.execute(before, language=language))
        pause_and_resume(box)
        for language, (_, after) in made.items():
            events = box.execute(after, language=language)
            text_of(events)
            assert "42" in str([e for e in events if e["type"] in ("result", "stdout")]), (language, events)
    finally:
        box.kill()


def test_a_paused_box_costs_no_processes(wire: Wire, box: RawBox) -> None:
    """The checkpoint is on disk: nothing of the box runs while it sleeps."""
    mark = "3141592653"
    box.run(f"sleep {mark} >/dev/null 2>&1 &")
    eventually(lambda: host_runs(mark))
    assert pause(box).status == 204
    eventually(lambda: not host_runs(mark))
    assert connect(box).status == 201
    assert host_runs(mark)


def host_runs(mark: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                return True
    return False


def test_concurrent_pauses_and_connects(box: RawBox) -> None:
    start_counting(box)
    with ThreadPoolExecutor(6) as pool:
        pauses = [answer.status for answer in pool.map(lambda _: pause(box), range(6))]
        assert set(pauses) <= {204, 409}
        assert 204 in pauses
        connects = [answer.status for answer in pool.map(lambda _: connect(box), range(6))]
        assert set(connects) <= {200, 201}
        assert connects.count(201) == 1
    assert box.agent("GET", "/health").status == 204
    counts_on(box)


def test_several_boxes_at_once(wire: Wire) -> None:
    boxes = [wire.create(timeout=120) for _ in range(4)]
    try:
        for number, box in enumerate(boxes):
            box.run(f"echo {number} > /tmp/who; setsid sleep 60{number} >/dev/null 2>&1 </dev/null &")
        with ThreadPoolExecutor(4) as pool:
            assert [a.status for a in pool.map(pause, boxes)] == [204] * 4
            assert [a.status for a in pool.map(connect, boxes)] == [201] * 4
        for number, box in enumerate(boxes):
            assert box.run("cat /tmp/who; pgrep -ax sleep")[1].split()[-1] == f"60{number}"
    finally:
        for box in boxes:
            box.kill()


def test_a_kill_wins_over_a_pause(wire: Wire, box: RawBox) -> None:
    with ThreadPoolExecutor(2) as pool:
        sleeping = pool.submit(pause, box)
        time.sleep(0.02)  # a moment inside the dump, whichever
        gone = pool.submit(wire.call, "DELETE", f"/sandboxes/{box.id}").result()
        assert gone.status == 204
        assert sleeping.result().status in (204, 404, 409)
    assert state(box) is None
    assert connect(box).status == 404


def test_a_paused_box_that_is_killed_is_gone(wire: Wire, box: RawBox) -> None:
    assert pause(box).status == 204
    assert wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
    assert state(box) is None
    assert connect(box).status == 404
    assert box.id not in [item["sandboxID"] for item in wire.call("GET", "/v2/sandboxes").json()]


def test_the_network_works_after_a_pause(box: RawBox) -> None:
    box.run("setsid python3 -m http.server 8901 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null &", cwd="/tmp")
    eventually(lambda: box.port(8901).status == 200)
    pause_and_resume(box)
    assert box.port(8901).status == 200
    assert box.run("ip -o link show lo | grep -c UP")[1].strip() == "1"


class TestTimeUpAndTraffic:
    def test_time_up_means_a_checkpoint(self, wire: Wire) -> None:
        box = wire.create(timeout=60, autoPause=True)
        try:
            start_counting(box)
            assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
            eventually(lambda: state(box) == "paused", 8)
            assert connect(box, 30).status == 201
            counts_on(box)
        finally:
            box.kill()

    def test_a_request_to_any_port_wakes_it(self, wire: Wire) -> None:
        box = wire.create(timeout=60, autoPause=True, autoResume={"enabled": True})
        try:
            box.run("setsid python3 -m http.server 8902 >/dev/null 2>&1 </dev/null &", cwd="/tmp")
            eventually(lambda: box.port(8902).status == 200)
            for wake in (
                lambda: box.port(8902).status == 200,
                lambda: box.agent("GET", "/health").status == 204,
                lambda: box.run("echo woken")[1] == "woken\n",
            ):
                assert pause(box).status == 204
                assert state(box) == "paused"
                assert wake()
                awake = detail(box)
                assert awake["state"] == "running"
                lasts = (moment(awake["endAt"]) - moment(awake["startedAt"])).total_seconds()
                assert lasts == pytest.approx(300, abs=2)
        finally:
            box.kill()

    def test_many_requests_wake_it_once(self, wire: Wire) -> None:
        box = wire.create(timeout=60, autoPause=True, autoResume={"enabled": True})
        try:
            start_counting(box)
            assert pause(box).status == 204
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: box.agent("GET", "/health").status, range(12)))
            assert answers == [204] * 12
            counts_on(box)
        finally:
            box.kill()

    def test_the_sdk_wakes_it(self) -> None:
        box = interpreter.Sandbox.create(timeout=60, lifecycle={"on_timeout": "pause", "auto_resume": True})
        try:
            box.run_code("x = 20")
            box.set_timeout(0)
            eventually(lambda: box.get_info().state.value == "paused", 8)
            assert box.run_code("x + 1").text == "21"
        finally:
            box.kill()

    def test_without_auto_resume_it_sleeps_on(self, wire: Wire) -> None:
        box = wire.create(timeout=60, autoPause=True)
        try:
            assert pause(box).status == 204
            assert box.agent("GET", "/health").status == 502
            assert state(box) == "paused"
        finally:
            box.kill()


def test_a_traced_process_is_named_and_the_box_lives_on(box: RawBox) -> None:
    """What no image can hold is refused with a reason, and nothing is lost."""
    start_counting(box)
    start_tracing(box)
    got = pause(box)
    assert got.status >= 400, "a traced process cannot be held"
    assert "trac" in got.json()["message"].lower(), got.body
    assert "python3" in got.json()["message"] or "tracer" in got.json()["message"], got.body
    assert state(box) == "running"
    counts_on(box)


def test_time_up_freezes_what_no_image_can_hold(wire: Wire) -> None:
    box = wire.create(timeout=120, autoPause=True)
    try:
        start_counting(box)
        start_tracing(box)
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
        eventually(lambda: state(box) == "paused")
        tier = eventually(lambda: wire.call("GET", f"/sandboxes/{box.id}").headers["X-Cloche-Pause-Tier"])
        assert tier == "frozen"
        assert connect(box).status == 201
        counts_on(box)
    finally:
        box.kill()


def test_a_pause_cuts_a_command_of_the_sdk() -> None:
    box = e2b.Sandbox.create(timeout=60)
    try:
        handle = box.commands.run("sleep 300", background=True, timeout=0)
        cut: list[Exception] = []

        def wait() -> None:
            try:
                handle.wait()
            except Exception as error:
                cut.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        eventually(lambda: handle.pid in [process.pid for process in box.commands.list()])
        assert box.pause()
        waiter.join(60)
        assert cut
        assert not isinstance(cut[0], e2b.CommandExitException)
        box.connect(timeout=60)
        assert handle.pid in [process.pid for process in box.commands.list()]
        assert box.commands.kill(handle.pid)
    finally:
        box.kill()
