# SPDX-License-Identifier: Apache-2.0
"""Tag reads: which tags there are and which builds they were put on; also as the generated client reads it."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import e2b
import pytest
from e2b.api.client.api.tags import (
    get_templates_template_id_tags,
    get_templates_template_id_tags_count,
    get_templates_template_id_tags_exists,
    get_templates_template_id_tags_groups,
    get_templates_template_id_tags_tag_assignments,
)
from e2b.api.client.api.templates import (
    get_default_templates,
    get_templates,
    get_templates_template_id,
    get_v2_templates,
)
from e2b.api.client_sync import get_api_client

from support.recipes import Order, fresh, run
from support.wire import Wire


class Tagged:
    """A template with two builds; `stable` was on the first, the second and the first again."""

    def __init__(self, wire: Wire) -> None:
        self.name = fresh("history")
        self.first, self.second = (
            Order(wire, self.name, {"tags": [tag]}).request().start(run(f"echo {tag}")).ready()
            for tag in ("v1", "v2")
        )
        for tag in ("v1", "v2", "v1"):
            wire.call("POST", "/templates/tags", {"target": f"{self.name}:{tag}", "tags": ["stable"]})
        self.id = self.first.template


@pytest.fixture(scope="module")
def tagged(wire: Wire) -> Tagged:
    return Tagged(wire)


def read(wire: Wire, template: str, rest: str) -> dict:
    got = wire.call("GET", f"/templates/{template}/tags/{rest}")
    assert got.status == 200, got.text
    return got.json()


def test_a_tag_that_moved_has_several_assignments(wire: Wire, tagged: Tagged) -> None:
    told = read(wire, tagged.id, "stable/assignments")
    assert set(told) == {"data", "nextCursor"}
    assert told["nextCursor"] is None
    builds = [tagged.first.build, tagged.second.build, tagged.first.build]
    assert [one["buildId"] for one in told["data"]] == builds
    times = [one["assignedAt"] for one in told["data"]]
    assert times == sorted(times, reverse=True)
    for one in told["data"]:
        keys = {"assignmentId", "buildId", "assignedAt", "buildCreatedAt", "buildFinishedAt"}
        assert set(one) == keys
        assert all(one.values())
        uuid.UUID(one["assignmentId"])
    assert len({one["assignmentId"] for one in told["data"]}) == 3

    pages, cursor = [], ""
    while cursor is not None:
        page = read(wire, tagged.id, f"stable/assignments?limit=1&cursor={cursor}")
        pages += page["data"]
        cursor = page["nextCursor"]
    assert pages == told["data"]
    assert read(wire, tagged.id, "none/assignments") == {"data": [], "nextCursor": None}


def test_count_and_exists(wire: Wire, tagged: Tagged) -> None:
    tags = {tag["tag"] for tag in wire.call("GET", f"/templates/{tagged.id}/tags").json()}
    assert read(wire, tagged.id, "count") == {"total": len(tags)}
    assert read(wire, tagged.name, "count") == {"total": len(tags)}, "a name works as well"
    assert read(wire, tagged.id, "exists?tag=V1") == {"exists": True, "normalizedTag": "v1"}
    assert read(wire, tagged.id, "exists?tag=v9") == {"exists": False, "normalizedTag": "v9"}


def test_groups_are_sorted_searched_and_paged(wire: Wire, tagged: Tagged) -> None:
    told = read(wire, tagged.id, "groups")
    assert told["nextCursor"] is None
    by_time = [group["tag"] for group in told["tags"]]
    assert by_time[0] == "stable"
    assert by_time.index("v2") < by_time.index("v1")
    assert all(set(group) == {"tag", "assignments", "hasMore"} for group in told["tags"])
    names = sorted(by_time)
    for sort, expected in (
        ("latest_desc", by_time),
        ("latest_asc", by_time[::-1]),
        ("name_asc", names),
        ("name_desc", names[::-1]),
    ):
        seen, cursor = [], ""
        while cursor is not None:
            page = read(wire, tagged.id, f"groups?sort={sort}&tagsLimit=1&tagsCursor={quote(cursor)}")
            seen += [group["tag"] for group in page["tags"]]
            cursor = page["nextCursor"]
        if sort.startswith("latest"):  # tags of one build may have the same time
            assert sorted(seen) == names
            assert (seen[0] == "stable") == (sort == "latest_desc")
        else:
            assert seen == expected
    (group,) = read(wire, tagged.id, "groups?search=tab&assignmentLimit=2")["tags"]
    assert (group["tag"], len(group["assignments"]), group["hasMore"]) == ("stable", 2, True)
    assert read(wire, tagged.id, "groups?search=v")["tags"][0]["hasMore"] is False


@pytest.mark.parametrize(
    "rest",
    [
        "exists", "exists?tag=", "exists?tag=a%20b", "exists?tag=" + "x" * 129,
        "groups?assignmentLimit=0", "groups?assignmentLimit=26", "groups?tagsLimit=101",
        "groups?tagsLimit=x", "groups?sort=up", "groups?search=A", "groups?search=" + "a" * 65,
        "groups?tagsCursor=x", "v1/assignments?limit=101", "v1/assignments?limit=0",
        "v1/assignments?cursor=!", "v1/assignments?cursor=eHh4", "a%20b/assignments",
    ],
)  # fmt: skip
def test_what_is_outside_is_refused(wire: Wire, tagged: Tagged, rest: str) -> None:
    got = wire.call("GET", f"/templates/{tagged.id}/tags/{rest}")
    assert got.status == 400, got.text
    assert got.json()["code"] == 400, got.text


def test_a_cursor_of_another_order_is_refused(wire: Wire, tagged: Tagged) -> None:
    cursor = read(wire, tagged.id, "groups?sort=name_asc&tagsLimit=1")["nextCursor"]
    path = f"/templates/{tagged.id}/tags/groups?tagsCursor={cursor}"
    assert wire.call("GET", path).status == 400
    assert wire.call("GET", f"{path}&sort=name_asc").status == 200


def test_unknown_and_foreign_templates_are_not_found(
    wire: Wire, stranger: Wire, tagged: Tagged
) -> None:
    for rest in ("count", "exists?tag=v1", "groups", "v1/assignments"):
        assert wire.call("GET", f"/templates/nosuchtemplate/tags/{rest}").status == 404
        assert stranger.call("GET", f"/templates/{tagged.id}/tags/{rest}").status == 404
        assert wire.call("GET", f"/templates/{tagged.id}/tags/{rest}", with_key=False).status == 401


def test_assignments_go_with_their_tag(wire: Wire, tagged: Tagged) -> None:
    wire.call("POST", "/templates/tags", {"target": f"{tagged.name}:v1", "tags": ["gone"]})
    assert read(wire, tagged.id, "exists?tag=gone")["exists"]
    wire.call("DELETE", "/templates/tags", {"name": tagged.name, "tags": ["gone"]})
    assert not read(wire, tagged.id, "exists?tag=gone")["exists"]
    assert read(wire, tagged.id, "gone/assignments")["data"] == []


def test_the_generated_client_reads_all_of_it(tagged: Tagged) -> None:
    client = get_api_client(e2b.ConnectionConfig())
    assert get_templates_template_id_tags_count.sync(tagged.id, client=client).total >= 3
    assert get_templates_template_id_tags_exists.sync(tagged.id, client=client, tag="V1").exists
    groups = get_templates_template_id_tags_groups.sync(tagged.id, client=client)
    assert groups.tags[0].tag == "stable"
    assert groups.next_cursor is None
    assert len(groups.tags[0].assignments) == 3
    page = get_templates_template_id_tags_tag_assignments.sync(
        tagged.id, "stable", client=client, limit=1
    )
    assert str(page.data[0].build_id) == tagged.first.build
    assert page.next_cursor
    assert {tag.tag for tag in get_templates_template_id_tags.sync(tagged.id, client=client)} >= {"v1"}
    one = get_templates_template_id.sync(tagged.id, client=client)
    assert one.template_id == tagged.id
    assert len(one.builds) == 2
    assert {t.template_id for t in get_templates.sync(client=client)} >= {tagged.id}
    assert get_v2_templates.sync_detailed(client=client).parsed
    assert {name for t in get_default_templates.sync(client=client) for name in t.aliases} >= {"base"}
