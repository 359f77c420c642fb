# SPDX-License-Identifier: Apache-2.0
"""An id is no secret: knowing the ids of everything that another team has opens, changes and stops nothing of it.

The requests come from the server's own table of routes: a new route about somebody's thing is tried without a change
here, and one about a kind of thing that these tests do not know fails them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.recipes import Order, path_of, run, tarball
from support.tenants import Tenants
from support.wire import Answer, RawBox, Wire

ROUTES = Path(__file__).resolve().parents[4] / "src" / "gate" / "api" / "api_routes.c"
HIDDEN = {401, 403, 404}
ADMINISTRATION = {401, 403}
OF_NOBODY = {"health", "readyz", "livez", "metrics", "default-templates", ".well-known", "mcp"}  # mcp: test_mcp.py

HOOK = {
    "name": "the victim's", "url": "https://hooks.example.com/secret", "enabled": False,
    "events": ["sandbox.lifecycle.created"], "signatureSecret": "SECRET-OF-THE-VICTIM-32-CHARACTERS",
}  # fmt: skip

BODIES: dict[str, Any] = {
    "timeout": {"timeout": 30},
    "secrets": {"value": "of-the-attacker"},
    "connect": {"timeout": 30},
    "network": {"denyOut": ["198.51.100.0/24"]},
    "fork": {"count": 1, "timeout": 30},
    "api-keys": {"name": "taken"},
    "templates": {"public": True, "dockerfile": "FROM base"},
    "builds": {"steps": [], "fromTemplate": "base", "force": True},
}


def routes() -> list[tuple[str, str]]:
    rows = re.findall(r'\{"([A-Z]+)", "([^"]+)", (\w+)', ROUTES.read_text())
    assert len(rows) > 60
    return [(method, path) for method, path, handler in rows if handler]


ABOUT_ONE = [row for row in routes() if "{" in row[1] and not row[1].startswith(("admin", "nodes", "uploads"))]
LISTS = [
    path for method, path in routes() if method == "GET" and "{" not in path and path.split("/")[0] not in OF_NOBODY
]


@dataclass
class Belongings:
    """What the victim has, of every kind."""

    box: RawBox
    asleep: RawBox
    snapshot: str
    order: Order
    upload: str
    key: str
    token: dict[str, Any]
    hook: str
    volume: str
    secret: dict[str, Any]
    team: str
    wire: Wire

    def ids(self) -> set[str]:
        return {self.box.id, self.asleep.id, self.snapshot, self.order.template, self.order.build, self.key,
                self.token["id"], self.hook, self.volume,
                self.secret["secretID"], self.secret["name"], self.team}  # fmt: skip

    def state(self) -> dict[str, Any]:
        """What another could have changed."""
        paths = {
            "box": f"/sandboxes/{self.box.id}",
            "asleep": f"/sandboxes/{self.asleep.id}",
            "snapshots": "/snapshots",
            "template": f"/templates/{self.order.template}",
            "tags": f"/templates/{self.order.template}/tags",
            "keys": "/api-keys",
            "hooks": "/events/webhooks",
            "volumes": "/volumes",
            "secrets": "/secrets",
            "build": f"/templates/{self.order.template}/builds/{self.order.build}/status",
        }
        found: dict[str, Any] = {}
        for name, path in paths.items():
            got = self.wire.call("GET", path)
            assert got.status == 200, (path, got.body)
            found[name] = got.json()
        for key in found["keys"]:
            key.pop("lastUsed", None)
        return found


@pytest.fixture(scope="module")
def belongings(tenants: Tenants) -> Iterator[Belongings]:
    wire = tenants.victim
    box, asleep = wire.create(timeout=600), wire.create(timeout=600)
    assert box.run("echo SECRET-OF-THE-VICTIM | tee /root/secret", user="root")[0] == 0
    shot = wire.call("POST", f"/sandboxes/{asleep.id}/snapshots", {})
    assert shot.status == 201, shot.body
    assert wire.call("POST", f"/sandboxes/{asleep.id}/pause").status == 204
    order = Order(wire, f"private-{os.getpid()}").request()
    upload = order.upload(tarball(("secret.txt", b"SECRET-OF-THE-VICTIM")))
    order.start(run("echo built")).ready()
    key = wire.call("POST", "/api-keys", {"name": "second"})
    assert key.status == 201, key.body
    token = wire.call("POST", "/access-tokens", {"name": "third"})
    assert token.status == 201, token.body
    hook = wire.call("POST", "/events/webhooks", HOOK)
    assert hook.status == 201, hook.body
    volume = wire.call("POST", "/volumes", {"name": f"private-{os.getpid()}"})
    assert volume.status == 201, volume.body
    secret = wire.call("POST", "/secrets", {"name": f"private-{os.getpid()}-s", "value": "SECRET-OF-THE-VICTIM"})
    assert secret.status == 201, secret.body
    team = wire.call("GET", "/teams").json()[0]["teamID"]
    made = Belongings(
        box, asleep, shot.json()["snapshotID"].split(":")[0], order, upload,
        key.json()["id"], token.json(), hook.json()["id"], volume.json()["volumeID"], secret.json(), team, wire,
    )  # fmt: skip
    before = made.state()
    yield made
    assert made.state() == before
    bearer = {"Authorization": f"Bearer {made.token['token']}"}
    assert wire.call("GET", "/templates", headers=bearer, with_key=False).status == 200
    assert box.run("cat /root/secret", user="root")[1] == "SECRET-OF-THE-VICTIM\n"
    assert wire.call("POST", f"/sandboxes/{asleep.id}/connect", {"timeout": 60}).status in (200, 201)
    assert wire.call("DELETE", f"/volumes/{made.volume}").status == 204
    assert wire.call("DELETE", f"/secrets/{made.secret['secretID']}").status == 204
    for one in (box, asleep):
        one.kill()


def fill(path: str, has: Belongings) -> list[str]:
    """The path with each of the victim's things that it can be about."""
    kind = path.split("{")[0]
    alias = f"private-{os.getpid()}"
    one = {
        "sandboxes/": [has.box.id, has.asleep.id],
        "v2/sandboxes/": [has.box.id, has.asleep.id],
        "templates/aliases/": [alias],
        "templates/": [has.order.template, has.snapshot],
        "v2/templates/": [has.order.template, has.snapshot],
        "api-keys/": [has.key],
        "access-tokens/": [has.token["id"]],
        "teams/": [has.team],
        "events/sandboxes/": [has.box.id, has.asleep.id],
        "events/webhooks/": [has.hook],
        "volumes/": [has.volume],
        "volumecontent/": [has.volume],
        "secrets/": [has.secret["secretID"], has.secret["name"]],
    }[kind]
    second = has.order.build if "builds/{second}" in path else has.upload
    queries = {
        "/tags/exists": "?tag=default",
        "/metrics/max": "?metric=concurrent_sandboxes",
        "/diff": f"?from={has.order.build}",
    }
    query = next((text for end, text in queries.items() if path.endswith(end)), "")
    return [path.replace("{id}", name).replace("{second}", second) + query for name in one]


def body_for(method: str, path: str) -> Any:
    if method == "GET":
        return None
    parts = path.split("/")
    for part in reversed(parts):
        if part in BODIES:
            return BODIES[part]
    return {}


@pytest.mark.parametrize(("method", "path"), ABOUT_ONE, ids=lambda value: value.replace("/", "."))
def test_another_team_finds_nothing(tenants: Tenants, belongings: Belongings, method: str, path: str) -> None:
    for filled in fill(path, belongings):
        for who, allowed in ((tenants.attacker, HIDDEN), (Wire(tenants.victim.url, None), {401})):
            got = who.call(method, f"/{filled}", body_for(method, path))
            if path.startswith("templates/aliases/"):  # a name that is free for one's own
                assert belongings.order.template not in got.text
                continue
            assert got.status in allowed, (method, filled, got.status, got.body)
            assert b"SECRET" not in got.body


@pytest.mark.parametrize("path", LISTS)
def test_lists_hold_nothing_of_another_team(tenants: Tenants, belongings: Belongings, path: str) -> None:
    query = f"?sandbox_ids={belongings.box.id},{belongings.asleep.id}" if path == "sandboxes/metrics" else ""
    got = tenants.attacker.call("GET", f"/{path}{query}")
    if path.startswith(("admin", "nodes", "metrics")):
        assert got.status in ADMINISTRATION, (path, got.body)
        return
    assert got.status == 200, (path, got.status, got.body)
    for name in belongings.ids():
        if not (path == "sandboxes/metrics" and name in query):
            assert name not in got.text, (path, name)
    if query:
        assert all(name not in got.json().get("sandboxes", {}) for name in belongings.ids()), got.body


def test_administration_is_nobodys_by_a_key(tenants: Tenants) -> None:
    team = tenants.victim.call("GET", "/teams").json()[0]["teamID"]
    for method, path in routes():
        if not path.startswith(("admin", "nodes", "metrics")):
            continue
        filled = path.replace("{id}", team).replace("{second}", "x")
        for shown in ({}, {"X-Admin-Token": ""}, {"X-Admin-Token": tenants.attacker.key or ""}):
            got = tenants.attacker.call(method, f"/{filled}", {} if method != "GET" else None, shown)
            assert got.status in ADMINISTRATION, (method, filled, got.status)


def test_tags_and_names_of_another_team_are_not_taken(tenants: Tenants, belongings: Belongings) -> None:
    slug = belongings.order.made["names"][0].split("/")[0]
    name = belongings.order.name
    for target in (f"{slug}/{name}:default", belongings.order.template):
        tagged = tenants.attacker.call("POST", "/templates/tags", {"target": target, "tags": ["mine"]})
        assert tagged.status in HIDDEN | {400}, (target, tagged.body)
        gone = tenants.attacker.call("DELETE", "/templates/tags", {"name": target, "tags": ["default"]})
        assert gone.status in HIDDEN | {400}, (target, gone.body)
    for reference in (f"{slug}/{name}", belongings.order.template, belongings.snapshot):
        made = tenants.attacker.call("POST", "/sandboxes", {"templateID": reference, "timeout": 30})
        assert made.status in HIDDEN | {400}, (reference, made.status, made.body)
        based = Order(
            tenants.attacker, f"based-{os.getpid()}-{hashlib.sha256(reference.encode()).hexdigest()[:6]}"
        ).request()
        got = based.try_start({"steps": [], "fromTemplate": reference, "force": False})
        assert got.status in HIDDEN | {400} or based.wait()["status"] == "error", (reference, got.status, got.body)


def test_an_upload_is_its_own_teams(tenants: Tenants, belongings: Belongings) -> None:
    """A link that was made for one team stores nothing for another, and a build finds only its own team's uploads."""
    mine = Order(tenants.attacker, f"mine-{os.getpid()}").request()
    link = mine.wire.call("GET", f"/templates/{mine.template}/files/{'a' * 64}").json()["url"]
    victim = tenants.victim.call("GET", "/teams").json()[0]["teamID"]
    own = tenants.attacker.call("GET", "/teams").json()[0]["teamID"]
    assert own in link
    forged = mine.wire_of(link).call("PUT", path_of(link).replace(own, victim), b"x", with_key=False)
    assert forged.status in HIDDEN, (forged.status, forged.body)
    copied = {"type": "COPY", "args": ["secret.txt", "/secret.txt"], "filesHash": belongings.upload}
    got = mine.try_start({"steps": [copied], "fromTemplate": "base", "force": False})
    assert got.status >= 400 or mine.wait()["status"] == "error", got.body


def test_the_signature_of_a_file_opens_its_own_box_only(tenants: Tenants, belongings: Belongings) -> None:
    attacker = tenants.attacker.create(timeout=60)
    try:
        for token in (attacker.token, tenants.attacker.key or "", belongings.box.id):
            for method in ("GET", "POST"):
                got = belongings.box.agent(
                    method, "/files?path=/root/secret&username=root", b"changed", headers={"X-Access-Token": token}
                )
                assert got.status in HIDDEN | {429}, (method, got.status)
        assert attacker.token != belongings.box.token
    finally:
        attacker.kill()


def test_root_in_a_box_reaches_no_gate(tenants: Tenants) -> None:
    """From inside a box the server's own ports are not there, by any address of the host that a box can name."""
    box = tenants.attacker.create(timeout=60)
    port = tenants.victim.address[1]
    try:
        code = (
            "import socket\n"
            f"for host in ('127.0.0.1', '::1', '10.0.0.1', '172.17.0.1', "
            f"'192.168.0.1', '169.254.169.254', '0.0.0.0'):\n"
            "    try:\n"
            f"        socket.create_connection((host, {port}), 1); print('REACHED', host)\n"
            "    except OSError as error:\n"
            "        print(host, error)\n"
        )
        said: Answer = box.agent(
            "POST",
            "/files?path=/tmp/reach.py&username=root",
            code.encode(),
            headers={"Content-Type": "application/octet-stream"},
        )
        assert said.status == 200, said.body
        _code, out, err = box.run("ip route; python3 /tmp/reach.py", user="root")
        assert "REACHED" not in out, out
        assert "127.0.0.1" in out, (out, err)
    finally:
        box.kill()
