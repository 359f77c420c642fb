# SPDX-License-Identifier: Apache-2.0
"""Pausing and resuming: states, clocks, traffic that wakes, and who may wake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import e2b
import pytest

from support.paused import counts_on, start_counting
from support.waiting import eventually
from support.wire import RawBox, Wire

NO_SUCH = "inonexistent00000000x"


@pytest.fixture
def living(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=120, metadata={"kept": "yes"}, envVars={"KEPT": "yes"})
    yield box
    box.kill()


def detail(box: RawBox) -> dict:
    return box.wire.call("GET", f"/sandboxes/{box.id}").json()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def pause(box: RawBox) -> int:
    return box.wire.call("POST", f"/sandboxes/{box.id}/pause", {}).status


def connect(box: RawBox, timeout: int = 60, path: str = "/sandboxes") -> int:
    return box.wire.call("POST", f"{path}/{box.id}/connect", {"timeout": timeout}).status


def test_a_connect_without_time_is_refused_and_the_box_stays_paused(living: RawBox) -> None:
    assert pause(living) == 204
    for seconds in (0, -1):
        got = living.wire.call("POST", f"/v2/sandboxes/{living.id}/connect", {"timeout": seconds})
        assert (got.status, got.json()["code"]) == (400, 400), got.body
    assert detail(living)["state"] == "paused"
    assert connect(living, path="/v2/sandboxes") == 201


def test_a_paused_box_sleeps_and_wakes_where_it_was(living: RawBox) -> None:
    start_counting(living)
    before = detail(living)
    assert pause(living) == 204
    asleep = detail(living)
    assert asleep["state"] == "paused"
    assert asleep["startedAt"] == before["startedAt"]
    assert abs((moment(asleep["endAt"]) - datetime.now(UTC)).total_seconds()) < 30
    assert asleep["metadata"] == {"kept": "yes"}
    assert living.agent("GET", "/health").status == 502
    assert living.port(8000).json() == {
        "sandboxId": living.id, "message": "The sandbox was not found", "code": 502,
    }  # fmt: skip
    assert connect(living) == 201
    awake = detail(living)
    assert awake["state"] == "running"
    assert moment(awake["startedAt"]) > moment(before["startedAt"])
    lasts = (moment(awake["endAt"]) - moment(awake["startedAt"])).total_seconds()
    assert lasts == pytest.approx(60, abs=1)
    assert living.run("echo $KEPT")[1] == "yes\n"
    counts_on(living)


def test_a_call_that_does_not_fit_the_boxs_state_is_refused(wire: Wire, living: RawBox) -> None:
    got = wire.call("POST", f"/sandboxes/{living.id}/resume", {})
    assert (got.status, got.json()["code"]) == (409, 409)
    assert pause(living) == 204
    got = wire.call("POST", f"/sandboxes/{living.id}/pause")
    assert (got.status, got.json()["code"]) == (409, 409)
    for path, body in (
        (f"/sandboxes/{living.id}/timeout", {"timeout": 60}),
        (f"/sandboxes/{living.id}/refreshes", {}),
    ):
        got = wire.call("POST", path, body)
        assert (got.status, got.json()["code"]) == (404, 404)
    got = wire.call("PUT", f"/sandboxes/{living.id}/network", {})
    assert (got.status, got.json()["code"]) == (404, 404)
    got = wire.call("POST", f"/sandboxes/{living.id}/resume", {"timeout": 30})
    assert got.status == 201
    assert got.json()["envdAccessToken"] == living.token
    assert living.agent("GET", "/health").status == 204


@pytest.mark.parametrize("call", ["pause", "resume", "connect", "timeout"])
def test_a_box_that_never_was_is_404_on_every_call(wire: Wire, call: str) -> None:
    got = wire.call("POST", f"/sandboxes/{NO_SUCH}/{call}", {"timeout": 5})
    assert (got.status, got.json()["code"]) == (404, 404)
    assert "doesn't exist" in got.json()["message"]


def boot_id(box: RawBox) -> str:
    return box.run("stat -c %Y /proc/1; cat /proc/1/stat | cut -d' ' -f22")[1]


def test_a_pause_without_memory_keeps_the_files(wire: Wire, living: RawBox) -> None:
    living.run(
        "echo kept > /home/user/kept; sudo sh -c 'echo root > /etc/kept; rm /etc/issue'; sleep 600 >/dev/null 2>&1 &"
    )
    born = boot_id(living)
    got = wire.call("POST", f"/sandboxes/{living.id}/pause", {"memory": False})
    assert got.status == 204
    assert got.headers["x-cloche-pause-tier"] == "files"
    assert detail(living)["state"] == "paused"
    assert living.agent("GET", "/health").status == 502
    assert wire.call("POST", f"/sandboxes/{living.id}/pause").status == 409
    got = wire.call("POST", f"/sandboxes/{living.id}/connect", {"timeout": 60})
    assert got.status == 201
    assert got.json()["envdAccessToken"] == living.token
    assert living.run("cat /home/user/kept /etc/kept; echo $KEPT; ls /etc/issue")[1] == "kept\nroot\nyes\n"
    assert living.run("pgrep -x sleep")[0] == 1
    assert boot_id(living) != born
    assert detail(living)["metadata"] == {"kept": "yes"}


@pytest.mark.parametrize("call", ["connect", "resume"])
def test_memory_can_be_left_behind(wire: Wire, living: RawBox, call: str) -> None:
    living.run("echo kept > /home/user/kept; sleep 600 >/dev/null 2>&1 &")
    assert pause(living) == 204
    got = wire.call("POST", f"/sandboxes/{living.id}/{call}", {"timeout": 60, "memory": False})
    assert got.status == 201
    assert living.run("cat /home/user/kept")[1] == "kept\n"
    assert living.run("pgrep -x sleep")[0] == 1
    assert wire.call("POST", f"/sandboxes/{living.id}/connect", {"timeout": 60, "memory": False}).status == 200


def test_files_alone_are_never_woken_by_traffic(wire: Wire) -> None:
    box = wire.create(timeout=120, autoPause=True, autoResume={"enabled": True})
    try:
        assert wire.call("POST", f"/sandboxes/{box.id}/pause", {"memory": False}).status == 204
        assert box.agent("GET", "/health").status == 502
        assert detail(box)["state"] == "paused"
    finally:
        box.kill()


def test_a_timeout_may_keep_the_files_alone(wire: Wire) -> None:
    box = wire.create(timeout=120, autoPause=True, autoPauseMemory=False)
    try:
        box.run("echo kept > /home/user/kept; sleep 600 >/dev/null 2>&1 &")
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
        eventually(lambda: detail(box)["state"] == "paused")
        assert connect(box) == 201
        assert box.run("cat /home/user/kept")[1] == "kept\n"
        assert box.run("pgrep -x sleep")[0] == 1
    finally:
        box.kill()


def test_lists_know_both_states(wire: Wire, living: RawBox) -> None:
    def ids(query: str) -> list[str]:
        return [item["sandboxID"] for item in wire.call("GET", f"/v2/sandboxes{query}").json()]

    assert pause(living) == 204
    assert living.id in ids("")
    assert living.id in ids("?state=paused")
    assert living.id not in ids("?state=running")
    assert living.id not in [item["sandboxID"] for item in wire.call("GET", "/sandboxes").json()]


def test_a_paused_box_can_be_killed(wire: Wire, living: RawBox) -> None:
    assert pause(living) == 204
    assert wire.call("DELETE", f"/sandboxes/{living.id}").status == 204
    assert wire.call("GET", f"/sandboxes/{living.id}").status == 404
    assert connect(living) == 404


def test_a_pause_cuts_streams_without_a_clean_end(wire: Wire, living: RawBox) -> None:
    message = {"process": {"cmd": "/bin/bash", "args": ["-c", "sleep 30"]}, "stdin": False}
    body = json.dumps(message).encode()
    frame = b"\0" + len(body).to_bytes(4, "big") + body
    sent = living.headers() | {
        "Content-Type": "application/connect+json",
        "Connect-Protocol-Version": "1",
        "Content-Length": str(len(frame)),
    }
    head = "POST /process.Process/Start HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in sent.items()) + "\r\n"
    with wire.open() as link:
        link.sendall(head.encode() + frame)
        seen = link.recv(65536)
        assert seen.startswith(b"HTTP/1.1 200")
        assert pause(living) == 204
        try:
            while part := link.recv(65536):
                seen += part
        except ConnectionResetError:
            pass
    assert not seen.endswith(b"0\r\n\r\n")
    assert connect(living) == 201
    assert "sleep" in living.run("ps -eo args")[1]


def test_of_many_pauses_and_connects_at_once_each_happens_once(living: RawBox) -> None:
    with ThreadPoolExecutor(8) as pool:
        pauses = list(pool.map(lambda _: pause(living), range(8)))
        assert set(pauses) <= {204, 409}
        assert 204 in pauses
        connects = list(pool.map(lambda _: connect(living), range(8)))
        assert set(connects) <= {200, 201}
        assert connects.count(201) == 1
        assert living.agent("GET", "/health").status == 204


def test_a_kill_wins_over_rapid_pauses_and_resumes(wire: Wire, living: RawBox) -> None:
    for _ in range(20):
        assert pause(living) == 204
        assert connect(living) == 201
    assert living.run("echo alive")[1] == "alive\n"
    with ThreadPoolExecutor(3) as pool:
        pool.submit(pause, living)
        pool.submit(connect, living)
        gone = pool.submit(wire.call, "DELETE", f"/sandboxes/{living.id}")
        assert gone.result().status == 204
    assert wire.call("GET", f"/sandboxes/{living.id}").status == 404


def test_time_up_means_sleep_when_asked_for(wire: Wire) -> None:
    box = wire.create(timeout=1, autoPause=True)
    try:
        assert detail(box)["lifecycle"] == {"autoResume": False, "onTimeout": "pause"}
        eventually(lambda: detail(box)["state"] == "paused", 4)
        assert connect(box, 0) == 201
        eventually(lambda: detail(box)["state"] == "paused", 4)
        assert connect(box, 60) == 201
        assert wire.call("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
        eventually(lambda: detail(box)["state"] == "paused", 4)
    finally:
        box.kill()


def test_a_resume_may_change_what_happens_at_the_end(wire: Wire) -> None:
    box = wire.create(timeout=60, autoPause=False)
    try:
        assert pause(box) == 204
        path = f"/sandboxes/{box.id}/resume"
        assert wire.call("POST", path, {"timeout": 60, "autoPause": "yes"}).status == 400
        assert wire.call("POST", path, {"timeout": 1, "autoPause": True}).status == 201
        assert detail(box)["lifecycle"]["onTimeout"] == "pause"
        eventually(lambda: detail(box)["state"] == "paused", 4)
    finally:
        box.kill()


class TestTrafficWakes:
    @pytest.fixture
    def dozing(self, wire: Wire) -> Iterator[RawBox]:
        box = wire.create(
            timeout=30, autoPause=True, autoResume={"enabled": True},
            network={"allowPublicTraffic": False},
        )  # fmt: skip
        box.run("setsid python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &", cwd="/tmp")
        token = {"E2B-Traffic-Access-Token": box.made["trafficAccessToken"]}
        eventually(lambda: box.port(8000, headers=token).status == 200)
        assert pause(box) == 204
        yield box
        box.kill()

    def test_the_agents_port_wakes_with_its_token(self, dozing: RawBox) -> None:
        assert detail(dozing)["lifecycle"] == {"autoResume": True, "onTimeout": "pause"}
        assert dozing.agent("GET", "/health").status == 204
        awake = detail(dozing)
        assert awake["state"] == "running"
        lasts = (moment(awake["endAt"]) - moment(awake["startedAt"])).total_seconds()
        assert lasts == pytest.approx(300, abs=1)

    def test_another_port_wakes_with_the_traffic_token(self, dozing: RawBox) -> None:
        token = {"E2B-Traffic-Access-Token": dozing.made["trafficAccessToken"]}
        assert dozing.port(8000, headers=token).status == 200
        assert detail(dozing)["state"] == "running"

    def test_without_it_the_box_sleeps_on(self, dozing: RawBox) -> None:
        for port, headers in (
            (49983, {}),
            (49983, {"X-Access-Token": "wrong"}),
            (8000, {}),
            (8000, {"E2B-Traffic-Access-Token": dozing.token}),
        ):
            got = dozing.port(port, "GET", "/health", headers=headers)
            assert (got.status, got.json()["code"]) == (403, 403)
            assert got.json()["sandboxId"] == dozing.id
        assert detail(dozing)["state"] == "paused"
        page = dozing.port(8000, headers={"User-Agent": "Mozilla/5.0"})
        assert "Unable to Resume Sandbox" in page.text

    def test_many_requests_wake_it_once(self, dozing: RawBox) -> None:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: dozing.agent("GET", "/health").status, range(16)))
        assert answers == [204] * 16


def test_the_sdk_pauses_and_resumes() -> None:
    box = e2b.Sandbox.create(timeout=60)
    try:
        box.files.write("kept.txt", "kept")
        assert box.pause()
        assert not box.pause()
        assert not box.is_running()
        again = e2b.Sandbox.connect(box.sandbox_id, timeout=60)
        assert again.is_running()
        assert again.files.read("kept.txt") == "kept"
        assert box.is_running()
    finally:
        box.kill()
