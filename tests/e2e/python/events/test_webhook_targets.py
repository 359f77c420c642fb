# SPDX-License-Identifier: Apache-2.0
"""Where webhooks may lead: the machine, its boxes and what only it can reach stay out of reach, whatever a name says
and however often it says something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.receiver import CREATED
from support.server import own_server
from support.waiting import eventually
from support.wire import Wire
from support.world import API, HOST, INSIDE, PUBLIC, SERVICE, Abroad, World, address

METADATA = "169.254.169.254"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    try:
        yield made
    finally:
        made.close()


def started(world: World, *flags: str) -> Iterator[Abroad]:
    made = Abroad(world)
    made.resolve_there()
    with own_server("--webhook_retry_seconds", "1", "--pool", "1", *flags, made=made) as server:
        yield server


@pytest.fixture
def guarded(world: World) -> Iterator[Abroad]:
    """As an operator has it who sets nothing."""
    yield from started(world)


@pytest.fixture
def open_server(world: World) -> Iterator[Abroad]:
    """Private addresses are allowed: what is refused now is refused always."""
    yield from started(world, "--webhook_private_addresses", "allow")


def register(api: Wire, url: str) -> dict[str, Any]:
    body = {"name": "n", "url": url, "events": [CREATED], "signatureSecret": "s"}
    made = api.call("POST", "/events/webhooks", body)
    assert made.status == 201, made.text
    return made.json()


def refused(api: Wire, url: str) -> str:
    body = {"name": "n", "url": url, "events": [CREATED], "signatureSecret": "s"}
    got = api.call("POST", "/events/webhooks", body)
    assert got.status == 400, (url, got.text)
    return got.json()["message"]


def create_and_look(server: Abroad, hooks: list[dict[str, Any]], attempts: int = 1) -> dict[str, list[dict[str, Any]]]:
    """URL to what its attempts for one event became, once there are so many of each."""
    with server.box() as box:
        event = server.wire.call("GET", f"/events/sandboxes/{box.sandbox_id}?types={CREATED}").json()[0]["id"]

    def of(hook: dict[str, Any]) -> list[dict[str, Any]]:
        groups = server.wire.call("GET", f"/events/webhooks/{hook['id']}/deliveries?limit=100").json()["data"]
        return [one for group in groups if group["eventId"] == event for one in group["attempts"]]

    eventually(lambda: all(len(of(hook)) >= attempts for hook in hooks), 30)
    return {hook["url"]: of(hook) for hook in hooks}


def assert_refused(attempt: dict[str, Any], address: str, why: str) -> None:
    assert (attempt["status"], attempt["errorClass"]) == ("failed", "request_error"), attempt
    assert address in attempt["errorMessage"], attempt
    assert why in attempt["errorMessage"], attempt
    assert attempt.get("responseBody") is None, attempt


def test_by_default_neither_an_address_nor_a_name_leads_inside(world: World, guarded: Abroad) -> None:
    api = guarded.wire
    with guarded.box() as box:
        theirs = address(box)
        inside = {
            theirs: "webhook_private_addresses",
            "127.0.0.1": "webhook_private_addresses",
            INSIDE: "webhook_private_addresses",
            "10.99.0.9": "webhook_private_addresses",
            "172.16.5.5": "webhook_private_addresses",
            "100.64.1.1": "webhook_private_addresses",
            METADATA: "never",
        }
        for number, why in inside.items():
            assert why in refused(api, f"http://{number}/hook")
        own = {theirs: "never", HOST: "webhook_private_addresses"}
        names = {f"n{i}.example.org": number for i, number in enumerate((*inside, HOST))}
        world.rename(names)
        urls = {f"http://{name}/": number for name, number in names.items()}
        urls[f"http://n1.example.org:{API}/sandboxes"] = "127.0.0.1"
        urls[f"http://{HOST}:{API}/sandboxes"] = HOST
        urls[f"http://{HOST}:{SERVICE}/"] = HOST
        reached = f"http://{PUBLIC[1]}/"
        found = create_and_look(guarded, [register(api, url) for url in (*urls, reached)])
    assert found[reached][0]["status"] == "success", "a public receiver is asked"
    assert f"{PUBLIC[1]} sees {HOST}" in found[reached][0]["responseBody"]
    for url, number in urls.items():
        why = "own API, which webhooks never reach" if url.endswith("/sandboxes") else (inside | own)[number]
        assert_refused(found[url][0], number, why)


def test_boxes_metadata_and_the_api_are_refused_where_private_addresses_are_allowed(
    world: World, open_server: Abroad
) -> None:
    api = open_server.wire
    with open_server.box() as box:
        theirs = address(box)
        box.commands.run("python3 -m http.server 8080", background=True)
        world.rename({"box.example.org": theirs, "meta.example.org": METADATA, "inner.example.org": INSIDE,
                      "api.example.org": "127.0.0.1"})  # fmt: skip
        assert "never" in refused(api, f"http://{METADATA}/latest")
        targets = {
            f"http://{theirs}:8080/": theirs,
            "http://box.example.org:8080/": theirs,
            "http://meta.example.org/": METADATA,
            f"http://127.0.0.1:{API}/": "127.0.0.1",
            f"http://api.example.org:{API}/": "127.0.0.1",
            f"http://{HOST}:{API}/": HOST,
        }
        inner = "http://inner.example.org/"
        found = create_and_look(open_server, [register(api, url) for url in (*targets, inner)])
    assert found[inner][0]["status"] == "success"
    for url, number in targets.items():
        assert_refused(found[url][0], number, "which webhooks never reach")


def test_a_name_that_changes_its_answer_is_judged_by_each(world: World, guarded: Abroad) -> None:
    """The first answer is the one that was checked and is connected to; the next attempt checks the next answer."""
    turning = {f"t{i}.example.org": [PUBLIC[1], number] for i, number in enumerate(("127.0.0.1", INSIDE, METADATA))}
    world.rename(turning)
    hooks = [register(guarded.wire, f"http://{name}/") for name in turning]
    for [one] in create_and_look(guarded, hooks).values():
        assert one["status"] == "success", one
        assert f"{PUBLIC[1]} sees {HOST}" in one["responseBody"]
    found = create_and_look(guarded, hooks, attempts=4)
    for name, (_, number) in turning.items():
        for one in found[f"http://{name}/"]:
            assert_refused(one, number, f"the address {number} is")
    world.rename(dict.fromkeys(turning, PUBLIC[2]))
    for [one] in create_and_look(guarded, hooks).values():
        assert f"{PUBLIC[2]} sees {HOST}" in one["responseBody"]
