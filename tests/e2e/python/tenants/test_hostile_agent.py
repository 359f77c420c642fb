# SPDX-License-Identifier: Apache-2.0
"""An agent that lies in every message it has (tests/escape/tenants/hostile_agent.c): the box it is in is refused or
ended within the
deadline, with a reason; everybody else is served meanwhile, and nothing is left behind."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator

import pytest

from support.recipes import Order, fresh, run, step
from support.server import own_server
from support.tenants import Tenants, runtime_with_agent, slowest_answer, two_teams
from support.wire import Answer, RawBox

DEADLINE = 5  # the setting agent_seconds
SLACK = 15.0  # a busy machine
CALM = 3.0  # longest that others may wait for an answer


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """A server whose agent lies where the boot packet says hostile:MODE; no box is made ahead, so each one is told
    everything at once."""
    runtime = runtime_with_agent(tmp_path_factory.mktemp("runtime") / "it", "hostile_agent")
    with own_server(
        "--runtime", runtime, "--pool", "0", "--agent-seconds", str(DEADLINE), "--checkpoint", "frozen"
    ) as made:
        yield two_teams(made)


def attempt(hostile: Tenants, mode: str) -> Answer:
    """Asks for a sandbox with such an agent; meanwhile the other team is served."""
    answers: list[Answer] = []
    body = {"templateID": "base", "timeout": 60, "secure": True, "envVars": {"MODE": f"hostile:{mode}"}}
    asking = threading.Thread(target=lambda: answers.append(hostile.attacker.call("POST", "/sandboxes", body)))
    began = time.monotonic()
    asking.start()
    assert slowest_answer(hostile.victim, 1.0, "/v2/sandboxes") < CALM
    asking.join()
    assert time.monotonic() - began < DEADLINE + SLACK
    return answers[0]


def running(hostile: Tenants) -> list[str]:
    return [row["sandboxID"] for row in hostile.attacker.call("GET", "/v2/sandboxes?state=running,paused").json()]


@pytest.mark.parametrize(
    "mode", ["boot-noise", "boot-empty", "boot-forges", "boot-long", "boot-dies", "boot-flood", "boot-mute"]
)
def test_a_sandbox_whose_agent_answers_nonsense_is_refused_in_time(hostile: Tenants, mode: str) -> None:
    got = attempt(hostile, mode)
    assert got.status >= 500, (got.status, got.body)
    said = got.json()["message"]
    assert "agent" in said, said
    assert said.isascii(), said
    assert said.isprintable(), said
    assert running(hostile) == []


def test_an_agents_words_can_not_forge_a_line_of_the_log(hostile: Tenants) -> None:
    attempt(hostile, "boot-forges")
    log = (hostile.server.home / "log").read_text(errors="replace")
    assert "FORGED" in log
    assert not [line for line in log.splitlines() if line.startswith("2026-01-01T00:00:00")]
    assert "\033" not in log


def test_descriptors_in_the_answer_are_refused(hostile: Tenants) -> None:
    """Where the kernel refuses them to the sender it answers like any agent, and the box is one."""
    got = attempt(hostile, "boot-descriptors")
    assert got.status in (201, 500), (got.status, got.body)
    for name in running(hostile):
        assert hostile.attacker.call("DELETE", f"/sandboxes/{name}").status == 204


# ---- HTTP ----


@pytest.mark.parametrize(
    "mode",
    [
        "http-status",
        "http-noise",
        "http-head",
        "http-lengths",
        "http-cut",
        "http-chunks",
        "http-continue",
        "http-split",
        "http-mute",
    ],
)
def test_what_is_no_http_answer_is_a_502_or_a_cut_connection(hostile: Tenants, mode: str) -> None:
    got = attempt(hostile, mode)
    assert got.status == 201, (got.status, got.body)
    box = RawBox(hostile.attacker, got.json())
    try:
        for path in ("/health", "/metrics"):
            try:
                told = box.agent("GET", path, timeout=8)
            except (TimeoutError, http.client.HTTPException, ConnectionError):
                continue  # cut, or the box's own silence: a client's matter
            assert told.status >= 500, (mode, told.status, told.body[:200])
            assert b"forged" not in told.body
        assert slowest_answer(hostile.victim, 0.5, "/health") < CALM
    finally:
        box.kill()


# ---- the log ring ----


@pytest.mark.parametrize("mode", ["ring", "ring-shrinks", "ring-link", "ring-fifo"])
def test_a_forged_log_ring_tells_no_more_than_lines(hostile: Tenants, mode: str) -> None:
    got = attempt(hostile, mode)
    assert got.status == 201, (got.status, got.body)
    box = RawBox(hostile.attacker, got.json())
    try:
        time.sleep(0.3)  # the forged ring is changed meanwhile; a crash has this long to happen
        for path in (f"/sandboxes/{box.id}/logs", f"/v2/sandboxes/{box.id}/logs?limit=1000"):
            told = hostile.attacker.call("GET", path, timeout=20)
            assert told.status in (200, 404), (told.status, told.body[:200])
            assert b"root:" not in told.body, "a file behind a link was read"
            if told.status == 200:
                assert len(told.json()["logs"]) <= 1000
        assert slowest_answer(hostile.victim, 0.5, "/health") < CALM
    finally:
        box.kill()
    assert hostile.attacker.call("GET", f"/sandboxes/{box.id}/logs", timeout=20).status in (200, 404)


# ---- builds ----


@pytest.mark.parametrize(
    "mode",
    [
        "build-half",
        "build-unknown",
        "build-refused",
        "build-status",
        "build-others",
        "build-descriptors",
        "build-flood",
        "build-dies",
    ],
)
def test_a_build_whose_agent_lies_fails_with_a_reason(hostile: Tenants, mode: str) -> None:
    order = Order(hostile.attacker, fresh("hostile")).request()
    order.start(step("ENV", "MODE", f"hostile:{mode}"), run("true"))
    worst = slowest_answer(hostile.victim, 2.0, "/health")
    told = order.wait(60)
    assert told["status"] == "error", told
    assert told["reason"]["message"], told
    assert told["reason"]["message"].isprintable(), told
    assert worst < CALM


# ---- afterwards ----


def test_an_honest_sandbox_beside_all_that_is_as_ever(hostile: Tenants) -> None:
    box = hostile.victim.create(timeout=60)
    try:
        assert box.run("echo here")[1] == "here\n"
    finally:
        box.kill()
