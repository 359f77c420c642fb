# SPDX-License-Identifier: Apache-2.0
"""`POST /templates` with a Dockerfile, as clients of before 2.1 build: requested, started without a body, polled."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from support.recipes import Order, fresh
from support.wire import Answer, Wire

TEMPLATE_KEYS = {
    "templateID", "buildID", "public", "aliases", "names", "cpuCount", "memoryMB", "diskSizeMB", "spawnCount",
    "buildCount", "createdAt", "updatedAt", "lastSpawnedAt", "createdBy", "envdVersion",
}  # fmt: skip

DOCKERFILE = """
FROM e2bdev/base
ENV WORD="two words"
WORKDIR /srv/app
RUN echo "$WORD by $(id -un)" > said && \\
    chown user /srv/app
USER user
CMD ["touch", "/tmp/not-this"]
"""


def ask(wire: Wire, body: dict[str, Any], path: str = "/templates") -> Order:
    got = wire.call("POST", path, body)
    assert got.status == 202, got.text
    told = got.json()
    assert set(told) >= TEMPLATE_KEYS
    assert told["public"] is False
    return Order(wire, told["aliases"][0], made=told)


def begin(asked: Order, wire: Wire | None = None) -> Answer:
    return (wire or asked.wire).call("POST", f"/templates/{asked.template}/builds/{asked.build}")


def built(asked: Order) -> Order:
    got = begin(asked)
    assert (got.status, got.body) == (202, b""), got.text
    return asked.ready()


def says(asked: Order, command: str) -> str:
    box = asked.box()
    try:
        return box.run(command)[1]
    finally:
        box.kill()


def test_a_dockerfile_becomes_a_template_and_is_rebuilt(wire: Wire) -> None:
    name = fresh("legacy")
    team = wire.call("GET", "/teams").json()[0]["teamID"]
    first = ask(wire, {
        "dockerfile": DOCKERFILE, "alias": name, "teamID": team, "cpuCount": 1, "memoryMB": 512,
        "startCmd": "touch /tmp/started; sleep infinity", "readyCmd": "test -e /tmp/started",
    })  # fmt: skip
    assert (first.made["aliases"], first.made["cpuCount"], first.made["memoryMB"]) == ([name], 1, 512)
    assert first.status()["status"] == "waiting"
    built(first)
    told = says(first, "cat /srv/app/said; ls /tmp/started /tmp/not-this 2>/dev/null; pgrep -c sleep")
    assert told == "two words by root\n/tmp/started\n1\n"
    once_more = begin(first)
    assert once_more.status == 400
    assert "not waiting" in once_more.text

    for ref in (first.template, name):
        again = ask(wire, {"dockerfile": f"FROM {name}\n" if ref == name else DOCKERFILE}, f"/templates/{ref}")
        assert again.template == first.template
        assert again.build != first.build
        if ref == name:
            continue
        built(again)
        assert says(again, "ls /tmp/not-this") == "/tmp/not-this\n", "CMD, where no startCmd is given"


def test_a_template_without_alias_has_its_id_for_a_name(wire: Wire) -> None:
    asked = ask(wire, {"dockerfile": "FROM e2bdev/base\nRUN echo hi > /said\n"})
    assert asked.made["aliases"] == [asked.template]
    built(asked)
    assert says(asked, "cat /said; id -un; pwd") == "hi\nuser\n/home/user\n"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "'dockerfile' must be"),
        ({"dockerfile": 7}, "'dockerfile' must be"),
        ({"dockerfile": "FROM e2bdev/base\0\n"}, "NUL"),
        ({"dockerfile": 'FROM e2bdev/base\nCMD ["a\\u0000b"]\n', "startCmd": 7}, "'startCmd'"),
        ({"dockerfile": "FROM e2bdev/base\nRUN " + "x" * (128 << 10)}, "131072"),
        ({"dockerfile": "FROM e2bdev/base\n" + "RUN x\n" * 501}, "at most 500 steps"),
        ({"dockerfile": "RUN true\n"}, "line 1: the first instruction must be FROM"),
        ({"dockerfile": "FROM e2bdev/base\n\nCOPY a b\n"}, "line 3: COPY and ADD need files"),
        ({"dockerfile": "FROM e2bdev/base\nADD a b\n"}, "POST /v3/templates"),
        ({"dockerfile": "FROM e2bdev/base\nRUN true\nFROM e2bdev/base\n"}, "line 3: this request builds one stage"),
        ({"dockerfile": "FROM ${NONE}\n"}, "line 1: FROM needs an image"),
        ({"dockerfile": "FROM e2bdev/base\n", "cpuCount": 3}, "cpuCount 3"),
        ({"dockerfile": "FROM e2bdev/base\n", "teamID": str(uuid.UUID(int=0))}, "not the team of this key"),
        ({"dockerfile": "FROM e2bdev/base\n", "alias": "no good name"}, "no good name"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_built_is_told_at_once(wire: Wire, body: dict[str, Any], complaint: str) -> None:
    got = wire.call("POST", "/templates", {"alias": fresh("legacy")} | body)
    assert got.status == 400, got.text
    assert complaint in got.json()["message"]


def test_ids_that_lead_nowhere(wire: Wire) -> None:
    body = {"dockerfile": "FROM e2bdev/base\n"}
    assert wire.call("POST", f"/templates/{'a' * 20}", body).status == 404
    waiting = ask(wire, {"alias": fresh("legacy")} | body)
    assert wire.call("POST", f"/templates/{waiting.template}/builds/{uuid.uuid4()}").status == 404
    assert wire.call("POST", f"/templates/{'a' * 20}/builds/{waiting.build}").status == 404
    assert wire.call("POST", f"/templates/{waiting.template}/builds/x").status == 400
    renamed = wire.call("POST", f"/templates/{waiting.template}", body | {"alias": "another"})
    assert renamed.status == 400, "a rebuild keeps the name"
    assert wire.call("POST", f"/templates/{waiting.name}%3Av2", body).status == 400, "nor has it a tag"
    bare = Order(wire, fresh("bare")).request()
    refused = begin(bare)
    assert refused.status == 400
    assert "without a Dockerfile" in refused.text


def test_another_team_can_neither_rebuild_nor_start(wire: Wire, stranger: Wire) -> None:
    body = {"dockerfile": "FROM e2bdev/base\n"}
    mine = ask(wire, {"alias": fresh("legacy")} | body)
    assert begin(mine, stranger).status == 403
    assert stranger.call("POST", f"/templates/{mine.template}", body).status == 403
    assert stranger.call("POST", f"/templates/{mine.name}", body).status == 404
    base = wire.call("GET", "/default-templates").json()[0]["templateID"]
    assert stranger.call("POST", f"/templates/{base}", body).status == 403, "seen by all, built by its owner"
    theirs = ask(stranger, {"alias": mine.name} | body)
    assert theirs.template != mine.template
    for method, path in (("POST", "/templates"), ("POST", f"/templates/{mine.template}/builds/{mine.build}")):
        assert wire.call(method, path, body, with_key=False).status == 401
    assert mine.status()["status"] == "waiting"


def test_an_access_token_will_do(wire: Wire) -> None:
    """What the CLI of that time showed."""
    token = wire.call("POST", "/access-tokens", {"name": fresh("token")}).json()
    headers = {"Authorization": f"Bearer {token['token']}"}
    body = {"dockerfile": "FROM e2bdev/base\n", "alias": fresh("legacy")}
    told = wire.call("POST", "/templates", body, headers, with_key=False)
    assert told.status == 202, told.text
    asked = Order(wire, body["alias"], made=told.json())
    path = f"/templates/{asked.template}/builds/{asked.build}"
    assert wire.call("POST", path, None, headers, with_key=False).status == 202
    asked.ready()
    wire.call("DELETE", f"/access-tokens/{token['id']}")
