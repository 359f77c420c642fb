# SPDX-License-Identifier: Apache-2.0
"""Access tokens: bearers for what belongs to a team, shown once, kept as a hash, taken back at once."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import uuid
from pathlib import Path

import pytest

from support.wire import Answer, Wire

TOKEN = re.compile(r"sk_e2b_[0-9a-f]{40}")


def bearer(wire: Wire, token: str, method: str, path: str, body: object = None) -> Answer:
    return wire.call(method, path, body, {"Authorization": f"Bearer {token}"}, with_key=False)


def cloche(*words: str) -> str:
    done = subprocess.run(
        [os.environ["CLOCHE_BIN"], *words], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def made(wire: Wire, unique: str) -> dict:
    got = wire.call("POST", "/access-tokens", {"name": f"token {unique}"})
    assert got.status == 201, got.text
    return got.json()


def test_a_token_is_shown_once_and_masked(wire: Wire, made: dict, unique: str) -> None:
    assert set(made) == {"id", "name", "token", "mask", "createdAt"}
    uuid.UUID(made["id"])
    assert made["name"] == f"token {unique}"
    assert TOKEN.fullmatch(made["token"])
    secret = made["token"].removeprefix("sk_e2b_")
    assert made["mask"] == {
        "prefix": "sk_e2b_", "valueLength": 40,
        "maskedValuePrefix": secret[:2], "maskedValueSuffix": secret[-4:],
    }  # fmt: skip
    assert made["id"] not in {key["id"] for key in wire.call("GET", "/api-keys").json()}


def test_a_token_opens_what_is_the_teams(wire: Wire, made: dict) -> None:
    token = made["token"]
    for path in ("/templates", "/v2/templates", "/default-templates", "/api-keys"):
        assert bearer(wire, token, "GET", path).status == 200, path
    team = wire.call("GET", "/teams").json()[0]["teamID"]
    assert bearer(wire, token, "GET", f"/teams/{team}/metrics").status == 200
    second = bearer(wire, token, "POST", "/access-tokens", {"name": "another"}).json()
    assert bearer(wire, token, "DELETE", f"/access-tokens/{second['id']}").status == 204
    assert bearer(wire, second["token"], "GET", "/templates").status == 401


def test_teams_tells_a_key_that_works(wire: Wire, made: dict) -> None:
    (team,) = bearer(wire, made["token"], "GET", "/teams").json()
    assert team["isDefault"] is True
    key = team["apiKey"]
    assert re.fullmatch(r"e2b_[0-9a-f]{40}", key)
    assert key != wire.key
    assert Wire(wire.url, key).call("GET", "/v2/sandboxes").status == 200
    (listed,) = [
        one for one in wire.call("GET", "/api-keys").json()
        if one["mask"]["maskedValueSuffix"] == key[-4:]
    ]  # fmt: skip
    assert wire.call("DELETE", f"/api-keys/{listed['id']}").status == 204
    assert Wire(wire.url, key).call("GET", "/v2/sandboxes").status == 401


def test_keys_made_for_a_token_are_few_and_go_with_it(wire: Wire, made: dict) -> None:
    def works(key: str) -> bool:
        return Wire(wire.url, key).call("GET", "/v2/sandboxes").status == 200

    before = len(wire.call("GET", "/api-keys").json())
    keys = []
    for _ in range(14):
        keys.append(bearer(wire, made["token"], "GET", "/teams").json()[0]["apiKey"])
        assert works(keys[0])  # the one in use stays
    assert len(set(keys)) == 14
    assert len(wire.call("GET", "/api-keys").json()) == before + 10
    assert works(keys[-1])
    assert not works(keys[1])
    assert wire.call("DELETE", f"/access-tokens/{made['id']}").status == 204
    assert not any(works(key) for key in (keys[0], keys[-1]))
    assert len(wire.call("GET", "/api-keys").json()) == before


def test_a_token_is_no_key_and_a_key_no_token(wire: Wire, made: dict) -> None:
    token = made["token"]
    assert bearer(wire, token, "GET", "/v2/sandboxes").status == 401
    assert bearer(wire, token, "POST", "/v2/sandboxes", {"templateID": "base"}).status == 401
    assert Wire(wire.url, token).call("GET", "/templates").status == 401
    as_key = token.replace("sk_e2b_", "e2b_")
    assert Wire(wire.url, as_key).call("GET", "/templates").status == 401
    assert wire.key
    assert bearer(wire, wire.key.replace("e2b_", "sk_e2b_"), "GET", "/templates").status == 401
    assert wire.call("DELETE", f"/api-keys/{made['id']}").status == 404
    assert wire.call("PATCH", f"/api-keys/{made['id']}", {"name": "x"}).status == 404
    for key in wire.call("GET", "/api-keys").json():
        assert wire.call("DELETE", f"/access-tokens/{key['id']}").status == 404


def test_a_deleted_token_is_worth_nothing_at_once(wire: Wire, made: dict) -> None:
    assert bearer(wire, made["token"], "GET", "/templates").status == 200
    assert wire.call("DELETE", f"/access-tokens/{made['id']}").status == 204
    got = bearer(wire, made["token"], "GET", "/templates")
    assert (got.status, got.json()["code"]) == (401, 401)
    assert wire.call("DELETE", f"/access-tokens/{made['id']}").status == 404


def test_a_token_is_its_teams(wire: Wire, made: dict, unique: str) -> None:
    team = cloche("team", "create", f"Other {unique}")
    stranger = Wire(wire.url, cloche("key", "create", "for a test", "--team", team))
    assert stranger.call("DELETE", f"/access-tokens/{made['id']}").status == 404
    headers = {"Authorization": f"Bearer {made['token']}", "X-Team-ID": team}
    assert wire.call("GET", "/templates", headers=headers, with_key=False).status == 403


def test_bodies_and_strangers_are_refused(wire: Wire) -> None:
    for body in ({}, {"name": ""}, {"name": 7}):
        assert wire.call("POST", "/access-tokens", body).status == 400
    assert wire.call("POST", "/access-tokens", {"name": "x"}, with_key=False).status == 401
    assert bearer(wire, "sk_e2b_short", "GET", "/teams").status == 401


def test_only_a_hash_is_stored(made: dict) -> None:
    secret = made["token"].removeprefix("sk_e2b_")
    data = Path(os.environ["CLOCHE_DATA"])
    (store,) = data.glob("*.db")
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        (row,) = db.execute("SELECT * FROM api_key WHERE id=?", [made["id"]]).fetchall()
    assert not any(secret in str(value) or bytes.fromhex(secret) == value for value in row)


def test_the_command_line_makes_one(wire: Wire) -> None:
    token = cloche("key", "create", "--token", "from the machine")
    assert TOKEN.fullmatch(token)
    assert bearer(wire, token, "GET", "/templates").status == 200
    (line,) = [line for line in cloche("key", "list").splitlines() if line.endswith("from the machine")]
    assert "sk_e2b_" in line
    cloche("key", "delete", line.split()[0])
    assert bearer(wire, token, "GET", "/templates").status == 401
