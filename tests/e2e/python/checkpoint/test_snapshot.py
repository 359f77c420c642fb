# SPDX-License-Identifier: Apache-2.0
"""Snapshots: named or not, listed, deleted, and boxes made from them with everything in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import e2b
import e2b_code_interpreter as interpreter
import pytest
import pytest_asyncio

from support.either import Either
from support.paused import counts_on, detail, pause, snapshot, start_counting
from support.recipes import answer, fresh
from support.wire import RawBox, Wire


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120, metadata={"of": "source"})
    yield made
    made.kill()


def taken(box: RawBox, **body: object) -> dict:
    got = snapshot(box, **body)
    assert got.status == 201, got.body
    return got.json()


def listed(wire: Wire, query: str = "") -> list[dict]:
    got = wire.call("GET", f"/snapshots{query}")
    assert got.status == 200, got.body
    return got.json()


def ids(wire: Wire, query: str = "") -> list[str]:
    return [item["snapshotID"] for item in listed(wire, query)]


def test_a_snapshot_without_a_name_is_made_while_the_box_runs_on(wire: Wire, box: RawBox) -> None:
    start_counting(box)
    box.run("echo kept > ~/kept")
    before = detail(box)
    made = taken(box)
    assert made["names"] == []
    template, tag = made["snapshotID"].split(":")
    assert (len(template), tag) == (20, "default")
    after = detail(box)
    assert (after["state"], after["endAt"]) == ("running", before["endAt"])
    counts_on(box)
    box.run("echo later > ~/kept")
    child = wire.create(made["snapshotID"], timeout=60, metadata={"of": "child"})
    try:
        assert child.run("cat ~/kept")[1] == "kept\n"
        counts_on(child)
        about = detail(child)
        assert about["templateID"] == template
        assert about["metadata"] == {"of": "child"}
        assert child.token != box.token
        assert child.run("echo $E2B_SANDBOX_ID")[1].strip() == child.id
    finally:
        child.kill()


def test_with_a_name_and_tags(wire: Wire, box: RawBox) -> None:
    name = fresh("snap")
    box.run("echo one > ~/mark")
    one = taken(box, name=name)
    assert one["snapshotID"].endswith(f"/{name}:default")
    assert one["names"] == [one["snapshotID"].rsplit(":", 1)[0]]
    box.run("echo two > ~/mark")
    two = taken(box, name=f"{name}:v2")
    assert two["snapshotID"] == f"{one['names'][0]}:v2"
    for reference, wanted in (
        (one["snapshotID"], "one"), (two["snapshotID"], "two"), (name, "one"), (f"{name}:v2", "two"),
    ):  # fmt: skip
        child = wire.create(reference, timeout=30)
        try:
            assert child.run("cat ~/mark")[1].strip() == wanted, reference
        finally:
            child.kill()
    box.run("echo three > ~/mark")
    taken(box, name=name)
    child = wire.create(name, timeout=30)
    try:
        assert child.run("cat ~/mark")[1] == "three\n", "a new snapshot under a name is used at once"
    finally:
        child.kill()


def test_snapshots_are_listed_by_box_and_by_name(wire: Wire, box: RawBox) -> None:
    name = fresh("listed")
    plain = taken(box)["snapshotID"]
    named = taken(box, name=name)["snapshotID"]
    tagged = taken(box, name=f"{name}:v2")["snapshotID"]
    alone = taken(box, name=f"{name}-2:v1")["snapshotID"]
    assert ids(wire, f"?sandboxID={box.id}") == [alone, named, plain], "newest first, a row per snapshot template"
    assert ids(wire, f"?name={name}") == [named]
    assert ids(wire, f"?name={name}-2") == [alone], "without a default tag, the newest"
    assert ids(wire, f"?name={name}:default") == [named]
    assert ids(wire, f"?name={quote(tagged, safe='')}") == [tagged]
    assert ids(wire, f"?name={quote(plain, safe='')}") == [plain]
    assert ids(wire, f"?name={fresh('none')}") == []
    assert ids(wire, "?sandboxID=inonexistent00000000x") == []
    assert all(set(item) >= {"snapshotID", "names"} for item in listed(wire))


def test_snapshots_are_listed_in_pages(wire: Wire, box: RawBox) -> None:
    made = [taken(box)["snapshotID"] for _ in range(3)]
    got = wire.call("GET", f"/snapshots?sandboxID={box.id}&limit=2")
    assert [item["snapshotID"] for item in got.json()] == [made[2], made[1]]
    token = got.headers["X-Next-Token"]
    rest = wire.call("GET", f"/snapshots?sandboxID={box.id}&limit=2&nextToken={quote(token)}")
    assert [item["snapshotID"] for item in rest.json()] == [made[0]]
    assert rest.headers["X-Next-Token"] is None
    for query in ("?limit=0", "?limit=101", "?nextToken=garbage"):
        assert wire.call("GET", f"/snapshots{query}").status == 400


def test_a_snapshot_is_deleted_once_no_box_of_it_is_left(wire: Wire, box: RawBox) -> None:
    made = taken(box, name=fresh("gone"))["snapshotID"]
    path = f"/templates/{quote(made, safe='')}"
    child = wire.create(made, timeout=60)
    try:
        assert wire.call("DELETE", path).status == 400
    finally:
        child.kill()
    assert wire.call("DELETE", path).status == 204
    again = wire.call("DELETE", path)
    assert (again.status, again.json()["code"]) == (404, 404)
    assert made not in ids(wire)
    assert wire.call("POST", "/sandboxes", {"templateID": made}).status == 404


def test_it_outlives_its_source(wire: Wire, box: RawBox) -> None:
    start_counting(box)
    made = taken(box)["snapshotID"]
    assert box.kill() == 204
    child = wire.create(made, timeout=60)
    try:
        counts_on(child)
        second = taken(child)["snapshotID"]
    finally:
        child.kill()
    grandchild = wire.create(second, timeout=60)
    try:
        counts_on(grandchild)
    finally:
        grandchild.kill()


def test_a_snapshot_with_a_bad_name_or_of_a_paused_box_is_refused(wire: Wire, box: RawBox) -> None:
    for name in ("a b", "x:", "/x", "strangers/x", 7):
        got = snapshot(box, name=name)
        assert (got.status, got.json()["code"]) == (400, 400), name
    got = wire.call("POST", "/sandboxes/inonexistent00000000x/snapshots", {})
    assert (got.status, got.json()["code"]) == (404, 404)
    assert pause(box).status == 204
    got = snapshot(box)
    assert (got.status, got.json()["code"]) == (404, 404)


class TestSdk:
    @pytest_asyncio.fixture(scope="class", params=["sync", "async"])
    async def cell(self, request: pytest.FixtureRequest) -> AsyncIterator[Either]:
        if request.param == "sync":
            made = Either(interpreter.Sandbox.create(timeout=120))
        else:
            made = Either(await interpreter.AsyncSandbox.create(timeout=120))
        yield made
        await made.kill()

    async def test_create_list_use_delete(self, cell: Either) -> None:
        kind = interpreter.AsyncSandbox if cell.is_async else interpreter.Sandbox
        await cell.run_code("x = 41; import random; random.seed(5)")
        name = fresh("sdk")
        made = await cell.create_snapshot(name=name)
        assert made.snapshot_id.endswith(f"/{name}:default")
        assert (await cell.run_code("x")).text == "41"

        pages = kind.list_snapshots(sandbox_id=cell.sandbox_id)
        found = await answer(pages.next_items())
        assert [item.snapshot_id for item in found] == [made.snapshot_id]
        assert pages.has_next is False

        children = [Either(await answer(kind.create(made.snapshot_id, timeout=60))) for _ in range(2)]
        try:
            assert [(await child.run_code("x + 1")).text for child in children] == ["42", "42"]
            draws = {(await child.run_code("random.random()")).text for child in children}
            assert len(draws) == 2, "two boxes of one snapshot do not draw the same"
        finally:
            for child in children:
                await child.kill()
        assert await answer(kind.delete_snapshot(made.snapshot_id)) is True
        assert await answer(kind.delete_snapshot(made.snapshot_id)) is False

    async def test_a_snapshot_of_no_box_is_not_found(self, cell: Either) -> None:
        kind = e2b.AsyncSandbox if cell.is_async else e2b.Sandbox
        with pytest.raises(e2b.SandboxNotFoundException):
            await answer(kind.create_snapshot("inonexistent00000000x"))
