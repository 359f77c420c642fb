# SPDX-License-Identifier: Apache-2.0
"""Deliveries while parts of the server die: nothing is lost, and no delivery id is used twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from support.receiver import CREATED, KILLED, Receiver, answer, in_turn, receiver
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import Wire

FLAGS = ("--webhook_private_addresses", "allow", "--webhook_retry_seconds", "2", "--pool", "1")


@pytest.fixture
def listener() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def register(api: Wire, url: str) -> str:
    body = {"name": "n", "url": url, "events": [CREATED, KILLED], "signatureSecret": "s"}
    made = api.call("POST", "/events/webhooks", body)
    assert made.status == 201, made.text
    return made.json()["id"]


def boxes_come_and_go(server: Server, count: int) -> set[str]:
    ids = set()
    for _ in range(count):
        box = server.cell()
        box.kill()
        ids.add(box.sandbox_id)
    return ids


def delivered(server: Server, hook: str) -> dict[str, list[str]]:
    """Event to the states of its attempts; empty while the server has no answer."""
    told = server.wire.call("GET", f"/events/webhooks/{hook}/deliveries?limit=100")
    if told.status != 200:
        return {}
    return {group["eventId"]: [one["status"] for one in group["attempts"]] for group in told.json()["data"]}


def all_arrive_once_accepted(server: Server, hook: str, listener: Receiver, boxes: set[str]) -> None:
    wanted = {(box, kind) for box in boxes for kind in (CREATED, KILLED)}
    eventually(lambda: sum("success" in states for states in delivered(server, hook).values()) == len(wanted))
    got = [(one.json()["sandbox_id"], one.json()["type"]) for one in listener.got]
    assert set(got) == wanted
    ids = [one.headers["e2b-delivery-id"] for one in listener.got]
    assert len(ids) == len(set(ids))
    told = server.wire.call("GET", f"/events/webhooks/{hook}/deliveries?limit=100").json()["data"]
    listed = [one["id"] for group in told for one in group["attempts"]]
    assert len(listed) == len(set(listed))
    assert set(ids) <= set(listed)


@pytest.mark.parametrize("role", ["sender", "warden"])
def test_a_role_that_is_killed_while_retries_wait_loses_nothing(listener: Receiver, role: str) -> None:
    with own_server(*FLAGS) as server:
        hook = register(server.wire, listener.url)
        listener.behaviour = in_turn(*[answer(500)] * 6, answer(200))
        boxes = boxes_come_and_go(server, 3)
        eventually(lambda: len(listener.got) == 6)
        (pid,) = server.senders() if role == "sender" else server.wardens()
        os.kill(pid, signal.SIGKILL)
        all_arrive_once_accepted(server, hook, listener, boxes)


@pytest.mark.parametrize("role", ["sender", "warden"])
def test_what_is_under_way_when_a_role_is_killed_is_sent_again(listener: Receiver, role: str) -> None:
    with own_server(*FLAGS) as server:
        hook = register(server.wire, listener.url)
        listener.behaviour = in_turn(listener.hang, answer(200))
        boxes = boxes_come_and_go(server, 1)
        eventually(lambda: len(listener.got) == 1)
        (pid,) = server.senders() if role == "sender" else server.wardens()
        os.kill(pid, signal.SIGKILL)
        all_arrive_once_accepted(server, hook, listener, boxes)
        told = server.wire.call("GET", f"/events/webhooks/{hook}/deliveries?orderAsc=true").json()["data"]
        cut = told[0]["attempts"][0]
        assert (cut["status"], cut["errorClass"]) == ("failed", "canceled")


def test_retries_survive_a_restart_of_the_server(listener: Receiver) -> None:
    with own_server(*FLAGS) as server:
        hook = register(server.wire, listener.url)
        listener.behaviour = answer(503)
        boxes = boxes_come_and_go(server, 2)
        eventually(lambda: len(listener.got) >= 4)
        server.signal(signal.SIGTERM)
        listener.behaviour = answer(200)
        server.start(*FLAGS)
        all_arrive_once_accepted(server, hook, listener, boxes)


def test_a_receiver_that_stays_down_loses_the_oldest_events_only() -> None:
    with receiver() as listener, own_server(*FLAGS, "--webhook_team_queue", "4") as server:
        hook = register(server.wire, listener.url)
        listener.behaviour = answer(503)
        boxes_come_and_go(server, 5)
        eventually(lambda: len(delivered(server, hook)) == 10)
        told = eventually(
            lambda: (
                (data := server.wire.call("GET", f"/events/webhooks/{hook}/deliveries?orderAsc=true").json()["data"])
                and data[0]["attempts"][-1]["errorClass"] == "canceled"
                and data
            )
        )
        assert "webhook_team_queue" in told[0]["attempts"][-1]["errorMessage"]
        assert all(one["errorClass"] == "http_error" for one in told[-1]["attempts"])
