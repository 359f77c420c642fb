# SPDX-License-Identifier: Apache-2.0
"""Which tier of isolation a sandbox gets where no guest can be started: the one that was asked for, or none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.recipes import Order, fresh, run
from support.server import Server, own_server
from support.wire import Answer, Wire

TOKEN = {"X-Admin-Token": "a token for a test"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--admin-token", TOKEN["X-Admin-Token"], "--microvm", "/nonexistent") as up:
        yield up


def create(wire: Wire, template: str, **fields: object) -> Answer:
    return wire.call("POST", "/sandboxes", {"templateID": template, "timeout": 60} | fields)


def refused(got: Answer) -> None:
    assert 400 <= got.status < 600, got.text
    assert "isolation 'microvm' can't be had on this server" in got.text, got.text


def accepted(wire: Wire, got: Answer) -> None:
    assert got.status == 201, got.text
    assert wire.call("DELETE", f"/sandboxes/{got.json()['sandboxID']}").status == 204


def test_a_template_says_which_tier_its_sandboxes_have(server: Server) -> None:
    wire = server.wire
    name = fresh("guests")
    made = Order(wire, name, {"isolation": "microvm"}).request().start(run("true")).ready()
    told = wire.call("GET", f"/templates/{made.template}").json()
    assert told["builds"][0]["isolation"] == "microvm"
    assert [one.get("isolation") for one in wire.call("GET", "/templates").json()] == ["microvm"]
    refused(create(wire, name))
    accepted(wire, create(wire, name, isolation="process"))
    again = Order(wire, name).request().start(run("true")).ready()
    assert "isolation" not in next(
        one for one in wire.call("GET", f"/templates/{made.template}").json()["builds"] if one["buildID"] == again.build
    )
    accepted(wire, create(wire, name))
    wrong = wire.call("POST", "/v3/templates", {"name": name, "isolation": "gvisor"})
    assert (wrong.status, "process" in wrong.text) == (400, True), wrong.text


def test_a_team_says_which_tier_its_sandboxes_have(server: Server) -> None:
    def call(method: str, path: str, body: dict | None = None) -> Answer:
        return server.wire.call(method, path, body, TOKEN, with_key=False)

    made = call("POST", "/admin/teams", {"name": "guests", "limits": {"isolation": "microvm"}}).json()
    assert made["limits"]["isolation"] == "microvm"
    path = f"/admin/teams/{made['teamID']}"
    team = Wire(server.url, call("POST", f"{path}/api-keys", {"name": "of the team"}).json()["key"])
    refused(create(team, "base"))
    accepted(team, create(team, "base", isolation="process"))
    accepted(server.wire, create(server.wire, "base"))
    name = fresh("processes")
    Order(team, name, {"isolation": "process"}).request().start(run("true")).ready()
    accepted(team, create(team, name))
    assert call("PATCH", path, {"limits": {"sandboxes": 5}}).json()["limits"]["isolation"] == "microvm"
    assert call("PATCH", path, {"limits": {"isolation": 2}}).status == 400
    assert call("PATCH", path, {"limits": {"isolation": "default"}}).json()["limits"]["isolation"] == "default"
    accepted(team, create(team, "base"))
