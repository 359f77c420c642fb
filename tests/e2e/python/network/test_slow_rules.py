# SPDX-License-Identifier: Apache-2.0
"""PUT /sandboxes/{id}/network while nft takes its time: in order for one box, and nobody else waits."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import own_server
from support.tenants import two_teams
from support.waiting import eventually
from support.wire import Answer, Wire
from support.world import PUBLIC, Abroad, World

SLOW = "198.18.77.77"  # rules that name it take until the file `go` is there

# The host's nft behind a script that waits; it tells that it does.
NFT = """#!/bin/sh
rules=$(cat)
case $rules in *{slow}*)
  echo waits >>{folder}/waiting
  while [ ! -e {folder}/go ]; do sleep 0.05; done ;;
esac
printf '%s\\n' "$rules" | /usr/sbin/nft -f -
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nft")
    script = made / "nft"
    script.write_text(NFT.format(slow=SLOW, folder=made))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return made


@pytest.fixture(scope="module")
def server(world: World, folder: Path) -> Iterator[Abroad]:
    made, path = Abroad(world), os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{path}"
    try:
        with own_server(made=made) as running:
            yield running
    finally:
        os.environ["PATH"] = path


@pytest.fixture(autouse=True)
def slow(folder: Path) -> Iterator[None]:
    for name in ("go", "waiting"):
        (folder / name).unlink(missing_ok=True)
    yield
    (folder / "go").touch()


class Put(threading.Thread):
    """One PUT in the background."""

    def __init__(self, wire: Wire, box: str, deny: list[str]) -> None:
        super().__init__()
        self.wire, self.box, self.deny = wire, box, deny
        self.answer: Answer | None = None
        self.start()

    def run(self) -> None:
        self.answer = self.wire.call("PUT", f"/sandboxes/{self.box}/network", {"denyOut": self.deny})

    def status(self) -> int:
        self.join(20)
        assert self.answer
        return self.answer.status


def denied(wire: Wire, box: str) -> object:
    return wire.call("GET", f"/sandboxes/{box}").json()["network"].get("denyOut")


def waits(folder: Path) -> None:
    eventually((folder / "waiting").exists, 10)


def test_slow_rules_of_one_box_delay_no_other_box_and_no_other_team(server: Abroad, folder: Path) -> None:
    teams = two_teams(server)
    mine, other, theirs = (wire.create("base", timeout=120) for wire in (teams.attacker, teams.attacker, teams.victim))
    stuck = Put(teams.attacker, mine.id, [SLOW])
    waits(folder)
    began = time.monotonic()
    for wire, box in ((teams.victim, theirs), (teams.attacker, other)):
        assert wire.call("PUT", f"/sandboxes/{box.id}/network", {"denyOut": [PUBLIC[2]]}).status == 204
        assert denied(wire, box.id) == [PUBLIC[2]]
        assert box.run(f"curl -s -m 2 -o /dev/null http://{PUBLIC[2]}/ || echo refused")[1].strip() == "refused"
    teams.victim.create("base", timeout=60).kill()
    assert stuck.is_alive(), "the slow one is under way all the while"
    assert time.monotonic() - began < 8
    (folder / "go").touch()
    assert stuck.status() == 204
    assert denied(teams.attacker, mine.id) == [SLOW]
    for box in (mine, other, theirs):
        box.kill()


def test_changes_of_one_box_are_made_in_order(server: Abroad, folder: Path) -> None:
    wire = server.wire
    box = wire.create("base", timeout=120)
    first = Put(wire, box.id, [SLOW])
    waits(folder)
    second = Put(wire, box.id, [PUBLIC[3]])
    other = wire.create("base", timeout=60)
    assert wire.call("PUT", f"/sandboxes/{other.id}/network", {"denyOut": [PUBLIC[2]]}).status == 204
    other.kill()
    assert second.is_alive(), "it waits for the first, though its own rules are quick"
    (folder / "go").touch()
    assert (first.status(), second.status()) == (204, 204)
    assert denied(wire, box.id) == [PUBLIC[3]], "the one that came last"
    assert box.run(f"curl -s -m 2 -o /dev/null http://{PUBLIC[3]}/ || echo refused")[1].strip() == "refused"
    assert box.run(f"curl -s -m 5 http://{PUBLIC[2]}/ && echo fine")[1].strip().endswith("fine")
    box.kill()


def test_more_changes_than_wait_are_refused(server: Abroad, folder: Path) -> None:
    wire = server.wire
    box = wire.create("base", timeout=120)
    first = Put(wire, box.id, [SLOW])
    waits(folder)
    crowd = [Put(wire, box.id, [PUBLIC[2]]) for _ in range(20)]
    eventually(lambda: sum(not each.is_alive() for each in crowd) >= 5, 10)
    (folder / "go").touch()
    statuses = sorted([first.status(), *(each.status() for each in crowd)])
    assert statuses.count(204) == 16
    assert set(statuses) == {204, 429}, statuses
    box.kill()


def test_a_box_that_ends_meanwhile_leaves_no_rules_to_the_next(server: Abroad, folder: Path) -> None:
    """Its slot is nobody's until nft is done; the boxes after it go where they may."""
    wire = server.wire
    box = wire.create("base", timeout=120)
    stuck = Put(wire, box.id, [SLOW, PUBLIC[4]])
    waits(folder)
    box.kill()
    while_stuck = [wire.create("base", timeout=60) for _ in range(3)]
    (folder / "go").touch()
    assert stuck.status() == 404
    after = [wire.create("base", timeout=60) for _ in range(4)]
    for each in (*while_stuck, *after):
        assert each.run(f"curl -s -m 5 http://{PUBLIC[4]}/ && echo fine")[1].strip().endswith("fine")
        each.kill()


def test_a_box_that_is_paused_meanwhile_keeps_what_it_had(server: Abroad, folder: Path) -> None:
    wire = server.wire
    box = wire.create("base", timeout=120)
    assert wire.call("PUT", f"/sandboxes/{box.id}/network", {"denyOut": [PUBLIC[2]]}).status == 204
    stuck = Put(wire, box.id, [SLOW, PUBLIC[4]])
    waits(folder)
    assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status in (200, 201)
    (folder / "go").touch()
    assert stuck.status() in (404, 409)
    assert denied(wire, box.id) == [PUBLIC[2]]

    def reaches(address: str) -> bool:
        return box.run(f"curl -s -m 2 -o /dev/null http://{address}/ && echo fine")[1].strip() == "fine"

    eventually(lambda: (reaches(PUBLIC[2]), reaches(PUBLIC[4])) == (False, True), 10)
    box.kill()
