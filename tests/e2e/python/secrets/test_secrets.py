# SPDX-License-Identifier: Apache-2.0
"""Secrets of a team: by the stock SDKs, and by raw HTTP for what no SDK lets a test say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import e2b
import pytest

from support.commands import cloche
from support.wire import Answer, Wire

FIELDS = {"secretID", "name", "currentVersion", "metadata", "createdAt", "updatedAt"}
VALUE = "sk-v4lue-that-nobody-may-see"


@pytest.fixture(scope="module")
def other() -> Wire:
    """Another team of the same server."""
    team = cloche("team", "create", "strangers")
    return Wire(key=cloche("key", "create", "--team", team, "theirs"))


@pytest.fixture
def name(wire: Wire, unique: str) -> Iterator[str]:
    yield f"key-{unique}"
    wire.call("DELETE", f"/secrets/key-{unique}")


def create(wire: Wire, name: str, **fields: object) -> Answer:
    return wire.call("POST", "/secrets", {"name": name, "value": VALUE} | fields)


# ---- the SDKs ----


def test_a_secret_lives_through_the_sync_sdk(name: str) -> None:
    made = e2b.Secret.create(name, VALUE, metadata={"owner": "me"})
    assert (made.name, made.version, made.metadata) == (name, 1, {"owner": "me"})
    assert made.secret_id.startswith("sec_")
    assert e2b.Secret.get_info(name) == e2b.Secret.get_info(made.secret_id) == made
    kept = e2b.Secret.update(name, "another")
    assert (kept.version, kept.metadata) == (2, {"owner": "me"})
    assert kept.updated_at > kept.created_at == made.created_at
    assert e2b.Secret.update(made.secret_id, "a third", metadata={}).metadata == {}
    assert e2b.Secret.exists(name)
    assert e2b.Secret.destroy(name)
    assert not e2b.Secret.destroy(name)
    assert not e2b.Secret.exists(name)
    with pytest.raises(e2b.SecretNotFoundException):
        e2b.Secret.update(name, "x")


async def test_a_secret_lives_through_the_async_sdk(name: str) -> None:
    made = await e2b.AsyncSecret.create(name, VALUE)
    assert (made.version, made.metadata) == (1, {})
    assert (await e2b.AsyncSecret.update(name, "b", metadata={"a": "b"})).metadata == {"a": "b"}
    assert (await e2b.AsyncSecret.get_info(made.secret_id)).version == 2
    assert await e2b.AsyncSecret.destroy(made.secret_id)
    assert not await e2b.AsyncSecret.exists(name)


def test_the_sdk_pages_through_all(wire: Wire, unique: str) -> None:
    names = [f"page-{unique}-{i}" for i in range(7)]
    for one in names:
        assert create(wire, one).status == 201
    pages = e2b.Secret.list(limit=3)
    found: list[str] = []
    count = 0
    while pages.has_next:
        part = pages.next_items()
        assert len(part) <= 3
        found += [s.name for s in part]
        count += 1
    assert count >= 3
    assert [n for n in found if n in names] == names  # in the order of their creation, each once
    for one in names:
        assert e2b.Secret.destroy(one)


def test_a_placeholder_is_plain_text_outside_of_rules(name: str) -> None:
    e2b.Secret.create(name, VALUE)
    with e2b.Sandbox.create(envs={"KEY": e2b.Secret.fill(name)}) as box:
        assert box.commands.run("echo $KEY").stdout.strip() == f"${{e2b.secrets.{name}}}"
        assert VALUE not in box.commands.run("env; cat /proc/*/environ 2>/dev/null | tr '\\0' ' '").stdout


# ---- the wire ----


def test_answers_have_the_fields_of_the_contract_and_are_not_kept(wire: Wire, name: str) -> None:
    made = create(wire, name.upper())
    assert made.status == 201
    assert set(made.json()) == FIELDS
    assert made.json()["name"] == name  # in lower case
    assert made.json()["metadata"] == {}
    known = [
        made,
        wire.call("GET", "/secrets"),
        wire.call("GET", f"/secrets/{name}"),
        wire.call("POST", f"/secrets/{name}", {"value": "b", "metadata": None}),
        create(wire, name),
        wire.call("GET", "/secrets/none-of-this-name"),
        wire.call("GET", "/secrets/sec_x"),
        wire.call("GET", "/secrets", with_key=False),
        wire.call("DELETE", f"/secrets/{name}"),
    ]
    assert [a.status for a in known] == [201, 200, 200, 200, 409, 404, 400, 401, 204]
    for answer in known:
        assert answer.headers["Cache-Control"] == "no-store"
        assert VALUE not in answer.text
    assert known[-1].body == b""


def test_a_selector_is_trimmed_and_its_case_ignored(wire: Wire, name: str) -> None:
    made = create(wire, name).json()
    for ref in (name.upper(), f"%20{name}%20", made["secretID"], made["secretID"].upper()):
        assert wire.call("GET", f"/secrets/{ref}").json()["secretID"] == made["secretID"]
    for ref in ("sec_", "sec_short", "SEC_" + "x" * 21, "sec_" + "-" * 20, "a%2Fb", "a.b", "x" * 129, "%20"):
        assert wire.call("GET", f"/secrets/{ref}").status == 400, ref
    assert wire.call("GET", "/secrets/sec_" + "0" * 20).status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 129},
        {"name": "a b"},
        {"name": "a.b"},
        {"name": "ä"},
        {"name": "sec_abc"},
        {"name": "SEC_abc"},
        {"name": None},
        {"name": 5},
        {"value": ""},
        {"value": None},
        {"value": 7},
        {"value": {"a": "b"}},
        {"value": "a\nInjected: yes"},
        {"value": "a\r"},
        {"value": "nul\0"},
        {"value": "x" * 16385},
        {"value": "x" * 200000},
        {"value": "\ud800"},
        {"metadata": []},
        {"metadata": {"a": 1}},
        {"metadata": {"a": None}},
        {"metadata": {"": "a"}},
        {"metadata": {"k" * 129: "a"}},
        {"metadata": {"k": "v" * 1025}},
        {"metadata": {f"k{i}": "v" for i in range(33)}},
        {"metadata": {f"k{i}": "v" * 1000 for i in range(9)}},
    ],
    ids=lambda fields: json.dumps(fields)[:40],
)
def test_a_bad_field_is_refused_without_repeating_it(wire: Wire, name: str, fields: dict[str, object]) -> None:
    body = {"name": name, "value": "h1dden-value", "metadata": {"note": "h1dden-note"}} | fields
    answer = wire.call("POST", "/secrets", body)
    assert answer.status == 400, answer.text
    assert "h1dden" not in answer.text
    for value in fields.values():
        if isinstance(value, str) and len(value) > 3:
            assert value not in answer.json()["message"]
    assert wire.call("GET", f"/secrets/{name}").status == 404


def test_broken_json_is_not_repeated(wire: Wire) -> None:
    answer = wire.call("POST", "/secrets", '{"name": "a", "value": "h1dden')
    assert answer.status == 400
    assert "h1dden" not in answer.text
    assert answer.headers["Cache-Control"] == "no-store"


def test_limits_are_reached_and_not_passed(wire: Wire, name: str) -> None:
    metadata = {f"{i:0128}": "\x01" * 1024 for i in range(7)} | {f"k{i}": "v" for i in range(25)}
    answer = create(wire, name, value="é" * 8192, metadata=metadata)
    assert answer.status == 201, answer.text
    assert answer.json()["metadata"] == metadata
    assert wire.call("GET", f"/secrets/{name}").json()["metadata"] == metadata
    assert wire.call("POST", f"/secrets/{name}", {"value": "x" * 16385}).status == 400
    assert wire.call("GET", f"/secrets/{name}").json()["currentVersion"] == 1


def test_a_bad_page_is_refused(wire: Wire) -> None:
    for query in ("limit=0", "limit=101", "limit=x", "nextToken=x", "nextToken=MSBzZWNfIQ", "nextToken=%20"):
        answer = wire.call("GET", f"/secrets?{query}")
        assert answer.status == 400, query
        assert "x'" not in answer.text


def test_another_team_sees_nothing(wire: Wire, other: Wire, name: str) -> None:
    mine = create(wire, name).json()
    for ref in (name, mine["secretID"]):
        assert other.call("GET", f"/secrets/{ref}").status == 404
        assert other.call("POST", f"/secrets/{ref}", {"value": "x"}).status == 404
        assert other.call("DELETE", f"/secrets/{ref}").status == 404
    assert other.call("GET", "/secrets").json() == []
    theirs = create(other, name)
    assert theirs.status == 201  # names are a team's own
    assert theirs.json()["secretID"] != mine["secretID"]
    assert other.call("DELETE", f"/secrets/{name}").status == 204
    assert wire.call("GET", f"/secrets/{name}").json() == mine


def test_a_team_has_as_many_as_it_may(other: Wire) -> None:
    for i in range(100):
        assert create(other, f"many-{i}").status == 201
    answer = create(other, "one-more")
    assert answer.status == 409
    assert answer.json()["error_code"] == "secret_limit_reached"
    assert other.call("POST", "/secrets/many-5", {"value": "still"}).status == 200
    assert "error_code" not in create(other, "many-7").json()  # taken, which is another reason
    first = other.call("GET", "/secrets")
    assert len(first.json()) == 100
    assert first.headers["X-Next-Token"] is None
    page = other.call("GET", "/secrets?limit=99")
    assert len(page.json()) == 99
    rest = other.call("GET", f"/secrets?limit=99&nextToken={page.headers['X-Next-Token']}")
    assert [s["name"] for s in rest.json()] == ["many-99"]
    assert rest.headers["X-Next-Token"] is None
    for i in range(100):
        assert other.call("DELETE", f"/secrets/many-{i}").status == 204
