# SPDX-License-Identifier: Apache-2.0
"""A pause as early as can be asked, and requests that arrive while a pause or a resume is under way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from support.paused import connect, fork, pause, state, text_of
from support.server import Server
from support.state import below
from support.waiting import eventually
from support.wire import Answer, RawBox

pytestmark = pytest.mark.timeout(180)


def made(server: Server) -> RawBox:
    box = server.wire.create("code-interpreter-v1", timeout=600)
    text_of(box.execute("x = 41"))
    box.run("echo kept > ~/kept")
    return box


def resume(box: RawBox) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/resume", {"timeout": 600})


def test_what_is_asked_right_after_a_pause_fits(server: Server) -> None:
    box = made(server)
    for _ in range(5):
        assert pause(box).status == 204
        assert pause(box).status == 409
        assert state(box) == "paused"
        assert connect(box).status == 201
        assert text_of(box.execute("x + 1")) == "42"
    assert pause(box).status == 204
    assert server.wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
    assert connect(box).status == 404


def test_a_copy_that_is_paused_stands_on_files_that_are_kept(server: Server) -> None:
    box = made(server)
    got = fork(box, count=1, timeout=600)
    assert got.status == 201, got.body
    copy = RawBox(server.wire, got.json()[0]["sandbox"])
    assert pause(copy).status == 204
    box.kill()
    assert connect(copy).status == 201
    assert text_of(copy.execute("x + 1")) == "42"
    assert copy.run("cat ~/kept")[1] == "kept\n"


@pytest.mark.parametrize("delay", [0.02, 0.06, 0.1, 0.14])
def test_a_box_killed_on_its_way_to_sleep_leaves_nothing(server: Server, delay: float) -> None:
    for _ in range(3):
        box = made(server)
        asking = threading.Thread(target=pause, args=(box,))
        asking.start()
        time.sleep(delay)  # the moment inside the pause is what is tried
        assert server.wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
        asking.join()
        left = partial(below, server.data, f"*{box.id}*")
        eventually(lambda left=left: not left(), state=left)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("template", ["base", "code-interpreter-v1"])
def test_the_first_pause_of_a_box_launched_on_demand_never_fails(server: Server, template: str) -> None:
    """The agent holds nothing of the host any more when the create is answered."""
    server.stop()
    server.start("--pool", "0")
    failed = []
    for _ in range(50):
        box = server.wire.create(template, timeout=600)
        got = pause(box)
        if got.status != 204:
            failed.append((got.status, got.body))
        box.kill()
    assert failed == []


def test_the_first_fork_of_a_box_launched_on_demand_never_fails(server: Server) -> None:
    server.stop()
    server.start("--pool", "0")
    failed = []
    for _ in range(20):
        box = server.wire.create("code-interpreter-v1", timeout=600)
        got = fork(box, count=1, timeout=600)
        if got.status == 201:
            RawBox(server.wire, got.json()[0]["sandbox"]).kill()
        else:
            failed.append((got.status, got.body))
        box.kill()
    assert failed == []


def test_resumes_of_one_paused_box_at_once_are_one_resume(server: Server) -> None:
    box = made(server)
    for _ in range(3):
        assert pause(box).status == 204
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda _: resume(box), range(5)))
        assert [answer.status for answer in answers] == [201] * 5, [answer.text for answer in answers]
        assert {answer.json()["sandboxID"] for answer in answers} == {box.id}
        assert text_of(box.execute("x + 1")) == "42"
        refused = resume(box)
        assert refused.status == 409, "a box that runs is not resumed again"


def is_paused(box: RawBox) -> bool:
    return state(box) == "paused"


def test_each_of_many_sandboxes_is_paused_at_its_time(server: Server) -> None:
    """A timer that rings a millisecond early was taken for an extension of the time, about once in ten."""
    boxes = [server.wire.create("base", timeout=1, autoPause=True) for _ in range(20)]
    for box in boxes:
        eventually(partial(is_paused, box), 60)
    for box in boxes:
        box.kill()
