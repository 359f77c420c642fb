# SPDX-License-Identifier: Apache-2.0
"""Listing: filters, order, paging, and the thrice-encoded metadata."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import e2b
import pytest

from support.wire import RawBox, Wire

RUN = "listing-" + format(time.time_ns(), "x")


@pytest.fixture(scope="module")
def three(wire: Wire) -> Iterator[list[RawBox]]:
    boxes = []
    for n in range(3):
        metadata = {"run": RUN, "n": str(n), "odd key": "x&y=z ü"}
        boxes.append(wire.create(timeout=300, metadata=metadata))
        time.sleep(0.02)  # so that no two have the same start in milliseconds, by which they are listed
    yield boxes
    for box in boxes:
        box.kill()


def ids(answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [item["sandboxID"] for item in answer.json()]


def ask(wire: Wire, **query: str):
    return wire.call("GET", f"/v2/sandboxes?{urlencode({'metadata': f'run={RUN}'} | query)}")


def test_newest_first_and_oldest_first(wire: Wire, three: list[RawBox]) -> None:
    order = [box.id for box in three]
    assert ids(ask(wire)) == order[::-1]
    assert ids(ask(wire, order="desc")) == order[::-1]
    assert ids(ask(wire, order="asc")) == order


def test_items_have_every_key(wire: Wire, three: list[RawBox]) -> None:
    item = ask(wire).json()[0]
    required = {
        "templateID", "sandboxID", "clientID", "startedAt", "endAt",
        "cpuCount", "memoryMB", "diskSizeMB", "state", "envdVersion",
    }  # fmt: skip
    assert required <= set(item)
    assert item["state"] == "running"
    assert item["metadata"]["n"] == "2"
    assert "envdAccessToken" not in item


def test_pages_end_without_a_token(wire: Wire, three: list[RawBox]) -> None:
    order = [box.id for box in three][::-1]
    first = ask(wire, limit="2")
    token = first.headers["X-Next-Token"]
    assert ids(first) == order[:2]
    assert token
    second = ask(wire, limit="2", nextToken=token)
    assert ids(second) == order[2:]
    assert second.headers["X-Next-Token"] is None
    exact = ask(wire, limit="3")
    assert exact.headers["X-Next-Token"] is None
    assert first.headers["X-Total-Running"] == "3"


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "101"},
        {"limit": "x"},
        {"nextToken": "garbage"},
        {"order": "sideways"},
        {"state": "sleeping"},
        {"startedAfter": "yesterday"},
        {"template": "base:tag"},
        {"metadata": "a=b=c"},
    ],
)
def test_a_list_query_that_makes_no_sense_is_refused(wire: Wire, query: dict[str, str]) -> None:
    got = wire.call("GET", f"/v2/sandboxes?{urlencode(query)}")
    assert (got.status, got.json()["code"]) == (400, 400)


def test_a_token_belongs_to_its_order(wire: Wire, three: list[RawBox]) -> None:
    token = ask(wire, limit="1", order="asc").headers["X-Next-Token"]
    assert ask(wire, limit="1", order="desc", nextToken=token).status == 400
    assert ids(ask(wire, limit="1", order="asc", nextToken=token)) == [three[1].id]


def test_boxes_are_listed_by_state(wire: Wire, three: list[RawBox]) -> None:
    assert len(ids(ask(wire, state="running"))) == 3
    assert ids(ask(wire, state="paused")) == []
    assert len(ids(ask(wire, state="running,paused"))) == 3
    raw_comma = wire.call("GET", f"/v2/sandboxes?state=running,paused&metadata=run%3D{RUN}")
    assert len(ids(raw_comma)) == 3


def test_metadata_is_encoded_three_times(wire: Wire, three: list[RawBox]) -> None:
    pairs = urlencode({quote("odd key"): quote("x&y=z ü"), "run": RUN})
    found = wire.call("GET", f"/v2/sandboxes?metadata={quote(pairs, safe='')}")
    assert len(ids(found)) == 3
    pairs = urlencode({quote("odd key"): quote("other"), "run": RUN})
    assert ids(wire.call("GET", f"/v2/sandboxes?metadata={quote(pairs, safe='')}")) == []


def test_all_pairs_must_match(wire: Wire, three: list[RawBox]) -> None:
    assert ids(ask(wire, metadata=f"run={RUN}&n=1")) == [three[1].id]
    assert ids(ask(wire, metadata=f"run={RUN}&n=9")) == []


def test_started_after_is_inclusive(wire: Wire, three: list[RawBox]) -> None:
    started = [item["startedAt"] for item in ask(wire, order="asc").json()]
    assert ids(ask(wire, order="asc", startedAfter=started[1])) == [box.id for box in three[1:]]
    later = (datetime.fromisoformat(started[2]) + timedelta(hours=1)).astimezone(
        datetime.now().astimezone().tzinfo
    )
    assert ids(ask(wire, startedAfter=later.isoformat())) == []
    with_offset = datetime.fromisoformat(started[1]).astimezone(UTC) + timedelta(hours=2)
    text = with_offset.replace(tzinfo=None).isoformat() + "+02:00"
    assert len(ids(ask(wire, startedAfter=text))) == 2


def test_boxes_are_listed_by_template(wire: Wire, three: list[RawBox]) -> None:
    assert len(ids(ask(wire, template="base"))) == 3
    assert len(ids(ask(wire, template=three[0].made["templateID"]))) == 3
    assert ids(ask(wire, template="code-interpreter-v1")) == []
    assert ids(ask(wire, template="no-such-template")) == []


def test_the_first_generation_lists_running_boxes(wire: Wire, three: list[RawBox]) -> None:
    found = wire.call("GET", f"/sandboxes?metadata=run%3D{RUN}")
    assert ids(found) == [box.id for box in three][::-1]


def test_the_sdk_pages_through(three: list[RawBox]) -> None:
    query = e2b.SandboxQuery(metadata={"run": RUN, "odd key": "x&y=z ü"})
    pages = e2b.Sandbox.list(query=query, limit=1)
    seen = []
    while pages.has_next:
        page = pages.next_items()
        assert len(page) <= 1
        seen += [item.sandbox_id for item in page]
    assert seen == [box.id for box in three][::-1]


def test_two_boxes_make_exactly_two_pages(wire: Wire, three: list[RawBox]) -> None:
    query = e2b.SandboxQuery(metadata={"run": RUN}, state=[e2b.SandboxState.RUNNING])
    pages = e2b.Sandbox.list(query=query, limit=2, order="asc")
    assert [item.sandbox_id for item in pages.next_items()] == [box.id for box in three[:2]]
    assert pages.has_next
    assert [item.sandbox_id for item in pages.next_items()] == [three[2].id]
    assert not pages.has_next
