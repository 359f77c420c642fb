# SPDX-License-Identifier: Apache-2.0
"""Volumes of a team: create, list, read and delete them, with the stock SDKs and without."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest
from e2b.exceptions import VolumeNotFoundException

from support.server import Server, own_server
from support.tenants import Tenants, two_teams
from support.waiting import eventually
from support.wire import Answer, Wire


@pytest.fixture
def name(wire: Wire, unique: str) -> Iterator[str]:
    yield unique
    for one in wire.call("GET", "/volumes").json():
        if one["name"].startswith(unique):
            wire.call("DELETE", f"/volumes/{one['volumeID']}")


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    with own_server("--team_volumes_max", "3", "--pool", "0") as made:
        yield made


@pytest.fixture(scope="module")
def teams(small: Server) -> Tenants:
    return two_teams(small)


def test_the_sync_client_creates_connects_lists_and_destroys(name: str) -> None:
    made = e2b.Volume.create(name)
    assert made.name == name
    assert uuid.UUID(made.volume_id)
    again = e2b.Volume.connect(made.volume_id)
    assert (again.volume_id, again.name, again.token) == (made.volume_id, name, made.token)
    assert made.volume_id in [one.volume_id for one in e2b.Volume.list()]
    assert e2b.Volume.get_info(made.volume_id).token == made.token
    assert e2b.Volume.destroy(made.volume_id) is True
    assert e2b.Volume.destroy(made.volume_id) is False
    with pytest.raises(VolumeNotFoundException):
        e2b.Volume.connect(made.volume_id)


async def test_the_async_client_creates_connects_lists_and_destroys(name: str) -> None:
    made = await e2b.AsyncVolume.create(name)
    again = await e2b.AsyncVolume.connect(made.volume_id)
    assert (again.volume_id, again.name) == (made.volume_id, name)
    assert made.volume_id in [one.volume_id for one in await e2b.AsyncVolume.list()]
    assert await e2b.AsyncVolume.destroy(made.volume_id) is True
    assert await e2b.AsyncVolume.destroy(made.volume_id) is False


def test_the_list_has_no_tokens(wire: Wire, name: str) -> None:
    made = wire.call("POST", "/volumes", {"name": name})
    assert made.status == 201, made.text
    assert set(made.json()) == {"volumeID", "name", "token"}
    listed = [one for one in wire.call("GET", "/volumes").json() if one["name"] == name]
    assert listed == [{"volumeID": made.json()["volumeID"], "name": name}]


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "a b"}, {"name": "a/b"}, {"name": "../a"}, {"name": "ä"}, {"name": 1}, {"name": None},
     {"name": "a\x00"}, {"name": "x" * 129}, {"name": ["a"]}],
)  # fmt: skip
def test_a_bad_name_is_refused(wire: Wire, body: dict[str, object]) -> None:
    refused = wire.call("POST", "/volumes", body)
    assert refused.status == 400, refused.text
    assert "name" in refused.json()["message"]


def test_a_name_is_taken_once(wire: Wire, name: str) -> None:
    assert wire.call("POST", "/volumes", {"name": name}).status == 201
    again = wire.call("POST", "/volumes", {"name": name})
    assert (again.status, name in again.json()["message"]) == (400, True)
    assert wire.call("POST", "/volumes", {"name": name + "-B_2"}).status == 201


def test_an_id_that_is_no_uuid_is_a_bad_request(wire: Wire) -> None:
    for method in ("GET", "DELETE"):
        assert wire.call(method, "/volumes/not-a-uuid").status == 400
        assert wire.call(method, f"/volumes/{uuid.uuid4()}").status == 404


def test_another_team_sees_nothing(teams: Tenants, unique: str) -> None:
    mine = teams.victim.call("POST", "/volumes", {"name": unique}).json()
    path = f"/volumes/{mine['volumeID']}"
    assert teams.attacker.call("GET", path).status == 404
    assert teams.attacker.call("DELETE", path).status == 404
    assert teams.attacker.call("GET", "/volumes").json() == []
    theirs = teams.attacker.call("POST", "/volumes", {"name": unique})
    assert theirs.status == 201
    assert theirs.json()["token"] != mine["token"]
    assert teams.victim.call("DELETE", path).status == 204
    assert teams.attacker.call("DELETE", f"/volumes/{theirs.json()['volumeID']}").status == 204


def test_a_team_has_no_more_than_it_may(teams: Tenants, unique: str) -> None:
    def make(i: int) -> Answer | None:
        made = teams.attacker.call("POST", "/volumes", {"name": f"{unique}{i}"})
        return made if made.status == 201 else None

    ids = [eventually(lambda i=i: make(i)).json()["volumeID"] for i in range(3)]  # one deleted before counts a moment
    refused = teams.attacker.call("POST", "/volumes", {"name": f"{unique}3"})
    assert refused.status == 400
    assert "team_volumes_max" in refused.json()["message"]
    for one in ids:
        assert teams.attacker.call("DELETE", f"/volumes/{one}").status == 204


def test_files_go_with_the_volume(small: Server, unique: str) -> None:
    made = small.wire.call("POST", "/volumes", {"name": unique}).json()
    place = Path(small.data) / "volumes" / made["volumeID"]
    assert place.is_dir()
    assert small.wire.call("DELETE", f"/volumes/{made['volumeID']}").status == 204
    eventually(lambda: not place.exists())
