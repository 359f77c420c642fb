# SPDX-License-Identifier: Apache-2.0
"""Templates, teams and keys as far as they exist without building."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import e2b

from support.commands import cloche
from support.recipes import order, run
from support.waiting import eventually
from support.wire import Wire

REQUIRED = {
    "templateID", "buildID", "cpuCount", "memoryMB", "diskSizeMB", "public", "aliases", "names",
    "createdAt", "updatedAt", "createdBy", "lastSpawnedAt", "spawnCount", "buildCount",
    "envdVersion", "buildStatus",
}  # fmt: skip


def names_at(wire: Wire, path: str) -> set[str]:
    got = wire.call("GET", path)
    assert got.status == 200, got.body
    assert all(set(item) >= REQUIRED for item in got.json())
    return {alias for item in got.json() for alias in item["aliases"]}


def test_the_default_templates_have_a_list_of_their_own(wire: Wire) -> None:
    assert {"base", "code-interpreter-v1"} <= names_at(wire, "/default-templates")
    listed = wire.call("GET", "/default-templates").json()
    ids = [item["templateID"] for item in listed]
    assert ids == sorted(ids)
    for item in listed:  # what boxes of other teams do with them is nobody's business
        assert (item["spawnCount"], item["buildCount"], item["lastSpawnedAt"]) == (0, 0, None)
        assert item["isDefault"] is True
        assert item["buildStatus"] == "ready"


def test_a_team_sees_only_its_own_templates(wire: Wire, unique: str) -> None:
    mine = order(wire, f"own-{unique}", run("true")).ready()
    assert wire.call("PATCH", f"/v2/templates/{mine.template}", {"public": True}).status == 200
    team = cloche("team", "create", f"Stranger {unique}")
    stranger = Wire(wire.url, cloche("key", "create", "stranger", "--team", team))
    for path in ("/templates", "/v2/templates"):
        assert f"own-{unique}" in names_at(wire, path)
        assert not names_at(wire, path) & {"base", "code-interpreter-v1"}
        assert names_at(stranger, path) == set()
    assert wire.call("DELETE", f"/templates/{mine.template}").status == 204


def test_aliases_are_looked_up(wire: Wire) -> None:
    got = wire.call("GET", "/templates/aliases/base")
    assert got.status == 403  # it exists, and is the server's own
    assert wire.call("GET", "/templates/aliases/no-such-template").status == 404
    assert wire.call("GET", "/templates/aliases/base%3Ano-such-tag").status == 404
    assert wire.call("GET", "/templates/aliases/a%20b").status == 400
    assert wire.call("GET", "/templates/aliases/strangers%2Fbase").status == 400


def test_exists_in_the_sdk(unique: str) -> None:
    assert e2b.Template.exists("base") is True
    assert e2b.Template.exists("code-interpreter-v1") is True
    assert e2b.Template.exists(f"none-{unique}") is False


def test_a_template_by_id(wire: Wire) -> None:
    listed = wire.call("GET", "/default-templates").json()
    base = next(item for item in listed if "base" in item["aliases"])
    got = wire.call("GET", f"/templates/{base['templateID']}")
    assert got.status == 200
    assert got.json()["templateID"] == base["templateID"]
    assert set(got.json()) >= REQUIRED | {"builds"}
    assert got.json()["buildID"] == base["buildID"]
    assert base["buildID"] in [build["buildID"] for build in got.json()["builds"]]
    assert wire.call("GET", "/templates/nosuchtemplate0000000").status == 404


def test_the_tags_of_a_template_are_listed(wire: Wire) -> None:
    got = wire.call("GET", "/templates/base/tags")
    assert got.status == 200
    assert "default" in [item["tag"] for item in got.json()]


def test_deleting_what_is_not_there(wire: Wire) -> None:
    got = wire.call("DELETE", "/templates/no-such-template")
    assert (got.status, got.json()["code"]) == (404, 404)


def test_a_key_is_made_used_renamed_and_removed(wire: Wire, unique: str) -> None:
    made = wire.call("POST", "/api-keys", {"name": unique})
    assert made.status == 201, made.body
    fresh = Wire(wire.url, made.json()["key"])
    assert fresh.call("GET", "/v2/sandboxes").status == 200
    path = f"/api-keys/{made.json()['id']}"
    assert "lastUsed" not in made.json()
    assert wire.call("PATCH", path, {"name": f"{unique}-2"}).status == 200
    listed = {item["id"]: item for item in wire.call("GET", "/api-keys").json()}
    mine = listed[made.json()["id"]]
    assert datetime.now(UTC) - datetime.fromisoformat(mine["lastUsed"]) < timedelta(minutes=2)
    assert mine["name"] == f"{unique}-2"
    assert "key" not in mine
    assert set(mine["mask"]) == {
        "prefix", "valueLength", "maskedValuePrefix", "maskedValueSuffix",
    }  # fmt: skip
    assert wire.call("DELETE", path).status == 204
    assert fresh.call("GET", "/v2/sandboxes").status == 401
    assert wire.call("DELETE", path).status == 404


def test_a_template_cannot_go_while_a_box_lives(wire: Wire, unique: str) -> None:
    mine = order(wire, f"lived-in-{unique}", run("true")).ready()
    box = wire.create(mine.name, timeout=60)
    try:
        got = wire.call("DELETE", f"/templates/{mine.template}")
        assert got.status == 400, got.body
        assert e2b.Template.exists(mine.name) is True
    finally:
        box.kill()
    eventually(lambda: wire.call("DELETE", f"/templates/{mine.template}").status == 204)
    assert e2b.Template.exists(mine.name) is False


def test_a_template_of_the_server_cannot_be_deleted(wire: Wire) -> None:
    assert wire.call("DELETE", "/templates/base").status == 403
    assert e2b.Template.exists("base") is True
