# SPDX-License-Identifier: Apache-2.0
"""What is asked while something else is under way waits its turn, but for a second snapshot, and nothing is counted
wrong."""

from __future__ import annotations

import contextlib
import http.client
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.paused import (
    connect,
    counts_on,
    fork,
    pause,
    snapshot,
    start_counting,
    state,
    text_of,
)
from support.server import Server
from support.wire import Wire

pytestmark = pytest.mark.timeout(120)


def test_copies_and_a_pause_at_once_are_queued(wire: Wire) -> None:
    box = wire.create(timeout=300)
    made: list[str] = []
    try:
        start_counting(box)
        with ThreadPoolExecutor(5) as pool:
            forks = [pool.submit(fork, box), pool.submit(fork, box, count=2)]
            shot = pool.submit(snapshot, box)
            answers = [job.result() for job in [*forks, shot]]
        assert [answer.status for answer in answers] == [201] * 3, [answer.text[:200] for answer in answers]
        for answer in answers[:2]:
            made += [f"/sandboxes/{entry['sandbox']['sandboxID']}" for entry in answer.json()]
        made += [f"/templates/{answer.json()['snapshotID'].replace(':', '%3A')}" for answer in answers[2:]]
        assert len(made) == 4
        counts_on(box)
        with ThreadPoolExecutor(2) as pool:
            copying = pool.submit(fork, box)
            time.sleep(0.05)  # a moment inside the copy, whichever
            assert pause(box).status == 204
            assert copying.result().status == 201
        made += [f"/sandboxes/{entry['sandbox']['sandboxID']}" for entry in copying.result().json()]
        assert state(box) == "paused"
        assert connect(box).status == 201
        counts_on(box)
    finally:
        for path in made:
            wire.call("DELETE", path)
        box.kill()


def test_of_two_snapshots_at_once_one_is_told_to_come_back(wire: Wire) -> None:
    box = wire.create(timeout=300)
    try:
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(snapshot, [box, box]))
        assert sorted(answer.status for answer in answers) == [201, 409], [answer.text for answer in answers]
        answers.append(snapshot(box))
        assert answers[-1].status == 201, answers[-1].text
        refused = next(answer for answer in answers if answer.status == 409)
        assert refused.json()["code"] == 409
        assert "another snapshot" in refused.json()["message"]
        for answer in answers:
            if answer.status == 201:
                wire.call("DELETE", f"/templates/{answer.json()['snapshotID'].replace(':', '%3A')}")
    finally:
        box.kill()


def test_a_kill_reaches_copies_that_wait(wire: Wire) -> None:
    box = wire.create(timeout=300)
    with ThreadPoolExecutor(3) as pool:
        copies = [pool.submit(snapshot, box) for _ in range(3)]
        time.sleep(0.05)  # a moment inside the copies, whichever
        assert wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
        answers = [job.result() for job in copies]
    for answer in answers:
        assert answer.status in (201, 404, 409), answer.text
        if answer.status == 201:
            wire.call("DELETE", f"/templates/{answer.json()['snapshotID'].replace(':', '%3A')}")


def test_boxes_that_end_while_they_wake_up_are_counted_once(server: Server) -> None:
    """A count below zero would be a number above every limit."""
    wire = server.wire
    paused = [wire.create(timeout=300) for _ in range(2)]
    for box in paused:
        assert pause(box).status == 204
    with ThreadPoolExecutor(2) as pool:
        waking = pool.submit(connect, paused[0])
        time.sleep(0.03)  # a moment inside the restore, whichever
        assert wire.call("DELETE", f"/sandboxes/{paused[0].id}").status == 204
        made = wire.call("POST", "/sandboxes", {"templateID": "base", "timeout": 60})
        waking.result()
    assert made.status == 201, made.text
    wire.call("DELETE", f"/sandboxes/{made.json()['sandboxID']}")
    paused[1].kill()


def test_queued_cells_run_after_a_pause(wire: Wire) -> None:
    box = wire.create("code-interpreter-v1", timeout=300)
    try:
        text_of(box.execute("said = []"))

        def unheard(code: str) -> None:
            with contextlib.suppress(OSError, AssertionError, http.client.HTTPException, ValueError):
                box.execute(code)

        cells = ["import time; time.sleep(3); said.append('first')", "said.append('second')", "said.append('third')"]
        with ThreadPoolExecutor(3) as pool:
            waiting = []
            for cell in cells:
                waiting.append(pool.submit(unheard, cell))
                time.sleep(0.2)  # so that they queue in this order
            assert pause(box).status == 204
            for one in waiting:
                one.result()
        assert connect(box).status == 201
        assert text_of(box.execute("said")) == "['first', 'second', 'third']"
    finally:
        box.kill()
