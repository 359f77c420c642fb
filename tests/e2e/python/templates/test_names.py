# SPDX-License-Identifier: Apache-2.0
"""Names, tags and aliases: what they may be, where they point, and how they move back."""

from __future__ import annotations

import uuid

import e2b
import pytest

from support.recipes import Order, Workshop, fresh, order, run, step
from support.wire import Wire


def marked(wire: Wire, name: str, mark: str, **fields: object) -> Order:
    return Order(wire, name, dict(fields)).request().start(run(f"echo {mark} > ~/mark")).ready()


def mark(wire: Wire, reference: str) -> str:
    box = wire.create(reference)
    try:
        return box.run("cat ~/mark")[1].strip()
    finally:
        box.kill()


async def test_tags_in_the_sdk(wire: Wire, workshop: Workshop) -> None:
    name = fresh("tags")

    def recipe(word: str) -> e2b.TemplateClass:
        return workshop.template().from_template("base").run_cmd(f"echo {word} > ~/mark")

    first = await workshop.build(recipe("one"), f"{name}:v1", tags=["stable"])
    assert sorted(first.tags) == ["stable", "v1"]
    second = await workshop.build(recipe("two"), name, tags=["v2"])
    assert sorted(second.tags) in (["default", "v2"], ["v2"])
    assert second.template_id == first.template_id
    assert second.build_id != first.build_id

    listed = {tag.tag: tag for tag in await workshop.call("get_tags", name)}
    assert {"v1", "stable", "v2"} <= set(listed)
    assert str(listed["v1"].build_id) == first.build_id
    assert str(listed["v2"].build_id) == second.build_id
    assert [mark(wire, f"{name}:{tag}") for tag in ("v1", "stable", "v2")] == ["one", "one", "two"]

    moved = await workshop.call("assign_tags", f"{name}:v2", ["stable", "fresh"])
    assert sorted(moved.tags) == ["fresh", "stable"]
    assert str(moved.build_id) == second.build_id
    assert mark(wire, f"{name}:stable") == "two"
    back = await workshop.call("assign_tags", f"{name}:v1", "stable")
    assert str(back.build_id) == first.build_id
    assert mark(wire, f"{name}:stable") == "one"

    await workshop.call("remove_tags", name, ["fresh", "v2"])
    left = {tag.tag for tag in await workshop.call("get_tags", name)}
    assert not {"fresh", "v2"} & left
    assert wire.call("POST", "/sandboxes", {"templateID": f"{name}:v2"}).status == 404
    assert await workshop.call("exists", f"{name}:v1")
    assert not await workshop.call("exists", f"{name}:v2")


async def test_exists_in_the_sdk(workshop: Workshop) -> None:
    assert await workshop.call("exists", "base")
    assert await workshop.call("alias_exists", "code-interpreter-v1")
    assert not await workshop.call("exists", fresh("none"))


def test_rollback_of_the_default(wire: Wire) -> None:
    name = fresh("roll")
    marked(wire, name, "old", tags=["v1"])
    if "default" not in {tag["tag"] for tag in wire.call("GET", f"/templates/{name}/tags").json()}:
        assert wire.call("POST", "/templates/tags", {"target": f"{name}:v1", "tags": ["default"]}).status == 201
    marked(wire, name, "new")
    assert mark(wire, name) == "new"
    running = wire.create(name)
    try:
        got = wire.call("POST", "/templates/tags", {"target": f"{name}:v1", "tags": ["default"]})
        assert got.status == 201
        assert mark(wire, name) == "old"
        assert running.run("cat ~/mark")[1] == "new\n", "a running box keeps its build"
    finally:
        running.kill()


def test_what_a_request_for_a_build_answers(wire: Wire) -> None:
    name = fresh("asked")
    got = wire.call("POST", "/v3/templates", {"name": f"{name}:V1", "tags": ["v1", "other"], "unknown": 1})
    assert got.status == 202
    made = got.json()
    assert set(made) >= {"templateID", "buildID", "public", "names", "aliases", "tags"}
    assert made["public"] is False
    assert made["aliases"] == [name]
    assert made["names"][0].endswith(f"/{name}")
    assert sorted(made["tags"]) == ["other", "v1"]
    assert str(uuid.UUID(made["buildID"], version=4)) == made["buildID"]
    assert len(made["templateID"]) == 20
    again = wire.call("POST", "/v3/templates", {"name": name.upper()}).json()
    assert again["templateID"] == made["templateID"]
    assert again["buildID"] != made["buildID"]
    assert again["tags"] == ["default"]
    old = wire.call("POST", "/v3/templates", {"alias": name})
    assert (old.status, old.json()["templateID"]) == (202, made["templateID"])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": ""},
        {"name": "/x"},
        {"name": "x:"},
        {"name": ":x"},
        {"name": "a b"},
        {"name": "a/b/c"},
        {"name": "strangers/x"},
        {"name": "x" * 129},
        {"name": f"x:{uuid.uuid4()}"},
        {"name": "x:a:b"},
        {"name": "x", "tags": ["a b"]},
        {"name": "x", "tags": [""]},
        {"name": "x", "tags": "v1"},
        {"name": 7},
        {"name": "x", "cpuCount": 3},
        {"name": "x", "cpuCount": 0},
        {"name": "x", "cpuCount": 64},
        {"name": "x", "memoryMB": 127},
        {"name": "x", "memoryMB": 1025},
        {"name": "x", "memoryMB": "much"},
        {"name": "x", "minFreeDiskMb": -1},
    ],
    ids=str,
)
def test_what_cannot_be_asked_for(wire: Wire, fields: dict) -> None:
    got = wire.call("POST", "/v3/templates", fields)
    assert (got.status, got.json()["code"]) == (400, 400), got.body
    assert got.json()["message"]


def test_tag_calls_and_their_refusals(wire: Wire) -> None:
    name = fresh("calls")
    build = marked(wire, name, "x")
    assign = lambda body: wire.call("POST", "/templates/tags", body)  # noqa: E731
    remove = lambda body: wire.call("DELETE", "/templates/tags", body)  # noqa: E731
    done = assign({"target": name, "tags": ["a", "b"]})
    assert (done.status, sorted(done.json()["tags"]), done.json()["buildID"]) == (201, ["a", "b"], build.build)
    assert assign({"target": name, "tags": []}).status == 400
    assert assign({"target": name, "tags": ["a b"]}).status == 400
    assert assign({"target": name, "tags": [str(uuid.uuid4())]}).status == 400
    assert assign({"target": fresh("none"), "tags": ["a"]}).status == 404
    assert assign({"target": f"{name}:none", "tags": ["a"]}).status == 404
    assert assign({"tags": ["a"]}).status == 400
    assert remove({"name": name, "tags": ["default"]}).status == 400
    assert remove({"name": f"{name}:a", "tags": ["a"]}).status == 400
    assert remove({"name": fresh("none"), "tags": ["a"]}).status == 404
    assert remove({"name": name, "tags": ["a"]}).status == 204
    listed = wire.call("GET", f"/templates/{name}/tags")
    assert listed.status == 200
    assert {tag["tag"] for tag in listed.json()} == {"default", "b"}
    assert all(set(tag) >= {"tag", "buildID", "createdAt"} for tag in listed.json())
    by_id = wire.call("GET", f"/templates/{build.template}/tags")
    assert by_id.json() == listed.json()
    assert wire.call("GET", f"/templates/{fresh('none')}/tags").status == 404


def test_names_with_the_teams_namespace(wire: Wire) -> None:
    name = fresh("space")
    build = marked(wire, name, "x", tags=["default", "v9"])
    whole = build.made["names"][0]
    for reference in (name, whole, f"{whole}:v9", build.template, f"{build.template}:v9"):
        assert mark(wire, reference) == "x", reference
    for reference in (name, whole.replace("/", "%2F"), f"{name}%3Av9"):
        got = wire.call("GET", f"/templates/aliases/{reference}")
        assert (got.status, got.json()) == (200, {"templateID": build.template, "public": False})


def test_two_teams_may_use_one_name(wire: Wire, stranger: Wire) -> None:
    name = fresh("shared")
    marked(wire, name, "mine")
    other = marked(stranger, name, "theirs")
    assert mark(wire, name) == "mine"
    assert mark(stranger, name) == "theirs"
    assert wire.call("POST", "/sandboxes", {"templateID": other.template}).status in (403, 404)


def test_an_older_unstarted_build_is_superseded(wire: Wire) -> None:
    name = fresh("older")
    old = Order(wire, name).request()
    assert old.status()["status"] == "waiting"
    new = Order(wire, name).request()
    assert old.status()["status"] == "error"
    got = old.try_start({"steps": [], "fromTemplate": "base"})
    assert got.status == 400
    new.start(run("true")).ready()


def test_a_template_is_listed_and_described(wire: Wire) -> None:
    name = fresh("listed")
    build = marked(wire, name, "x", cpuCount=1, memoryMB=512)
    for path in ("/templates", "/v2/templates"):
        item = next(i for i in wire.call("GET", path).json() if i["templateID"] == build.template)
        assert item["aliases"] == [name]
        assert item["names"] == build.made["names"]
        assert (item["cpuCount"], item["memoryMB"], item["buildCount"]) == (1, 512, 1)
        assert (item["buildID"], item["buildStatus"]) in ((build.build, "ready"), (build.build, "uploaded"))
    before = item["spawnCount"]
    build.box().kill()
    described = wire.call("GET", f"/templates/{build.template}").json()
    assert described["spawnCount"] == before + 1
    assert [b["buildID"] for b in described["builds"]] == [build.build]
    assert wire.call("GET", "/templates?teamID=00000000-0000-0000-0000-000000000000").status == 400


def test_order_of_tag_assignment_wins(wire: Wire) -> None:
    name = fresh("turns")
    one = marked(wire, f"{name}:v1", "one").build
    two = marked(wire, f"{name}:v2", "two").build
    for target, wanted in (("v1", one), ("v2", two), ("v1", one)):
        got = wire.call("POST", "/templates/tags", {"target": f"{name}:{target}", "tags": ["live"]})
        assert got.json()["buildID"] == wanted
    assert mark(wire, f"{name}:live") == "one"


def test_a_new_build_moves_only_its_own_tags(wire: Wire) -> None:
    name = fresh("own")
    order(wire, f"{name}:v1", run("echo 1 > ~/mark")).ready()
    order(wire, f"{name}:v2", run("echo 2 > ~/mark")).ready()
    assert (mark(wire, f"{name}:v1"), mark(wire, f"{name}:v2")) == ("1", "2")


def pages(wire: Wire, path: str, key: str | None) -> list[list[str]]:
    """Ids of a listing, two at a time."""
    found: list[list[str]] = []
    token = ""
    while True:
        got = wire.call("GET", f"{path}?limit=2{token}")
        assert got.status == 200, got.body
        items = got.json()[key] if key else got.json()
        found.append([item["buildID" if key else "templateID"] for item in items])
        if "X-Next-Token" not in got.headers:
            return found
        token = f"&nextToken={got.headers['X-Next-Token']}"


def test_pages_of_templates_and_of_a_templates_builds(wire: Wire) -> None:
    name = fresh("paged")
    builds = [order(wire, name, step("ENV", "N", str(n))).ready().build for n in range(5)]
    told = pages(wire, f"/templates/{name}", "builds")
    assert [len(page) for page in told] == [2, 2, 1]
    assert sum(told, []) == builds[::-1], "newest first"
    whole = [item["templateID"] for item in wire.call("GET", "/v2/templates").json()]
    others = pages(wire, "/v2/templates", None)
    assert all(len(page) == 2 for page in others[:-1])
    assert sum(others, [])[: len(whole)] == whole
    for path in (f"/templates/{name}", "/v2/templates"):
        for query in ("limit=0", "limit=101", "limit=x", "nextToken=nonsense"):
            assert wire.call("GET", f"{path}?{query}").status == 400, (path, query)
