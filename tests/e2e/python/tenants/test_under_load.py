# SPDX-License-Identifier: Apache-2.0
"""The main attacks of one team on another while a third one keeps the server busy: what the neighbour computes stays
right, nobody
else's words come out of its boxes, it is served in time, and nothing is left behind at the end.

All of it takes less than a minute: attacks that wait for a chance are given ten seconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from support.recipes import Order, tarball
from support.server import own_server
from support.stranger import AGENT_PORT, INTERPRETER_PORT, Stranger
from support.tenants import Tenants, cloche, put_program, two_teams
from support.wire import RawBox, Wire

TEMPLATE = "code-interpreter-v1"
SECRET = "neighbours-own-words"
SECONDS = 35.0  # of load
PATIENCE = 12.0  # for a create and a first cell; a tenth of it on a quiet machine


@dataclass
class Load:
    """Creates, cells and uploads of a team that takes part in nothing else."""

    wire: Wire
    over: threading.Event = field(default_factory=threading.Event)
    done: dict[str, int] = field(default_factory=lambda: {"boxes": 0, "cells": 0, "uploads": 0, "pauses": 0})
    wrong: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self.threads = [
            threading.Thread(target=self._repeat, args=(act,)) for act in (self._cells, self._cells, self._files)
        ]
        for thread in self.threads:
            thread.start()

    def _repeat(self, act: Callable[[int], None]) -> None:
        turn = 0
        while not self.over.is_set() and not self.wrong:
            turn += 1
            try:
                act(turn)
            except Exception as error:  # told by the test
                self.wrong.append(f"{act.__name__}: {error!r}")

    def _cells(self, turn: int) -> None:
        box = self.wire.create(TEMPLATE, timeout=60)
        self.done["boxes"] += 1
        try:
            for n in range(3):
                events = box.execute(f"{turn} * 1000 + {n}")
                assert any(str(turn * 1000 + n) in str(event) for event in events), events
                assert SECRET not in str(events)
                self.done["cells"] += 1
            if turn % 3 == 0:
                assert self.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
                self.done["pauses"] += 1
        finally:
            box.kill()

    def _files(self, turn: int) -> None:
        order = Order(self.wire, f"load-{os.getpid()}-{turn % 4}").request()
        order.upload(tarball(("bytes", os.urandom(1 << 19))))
        self.done["uploads"] += 1
        time.sleep(0.2)  # the pace of the load

    def stop(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(60)


@pytest.fixture
def busy() -> Iterator[tuple[Tenants, Load]]:
    with own_server() as made:
        tenants = two_teams(made)
        team = cloche(made, "team", "create", "Load")
        load = Load(Wire(made.url, cloche(made, "key", "create", "load", "--team", team)))
        load.start()
        try:
            yield tenants, load
        finally:
            load.stop()
            for wire in (tenants.attacker, tenants.victim, load.wire):
                for row in wire.call("GET", "/v2/sandboxes?state=running,paused").json():
                    wire.call("DELETE", f"/sandboxes/{row['sandboxID']}")


class Neighbour(threading.Thread):
    """The victim at its own work all the while: one box that stays, and new ones."""

    def __init__(self, wire: Wire, box: RawBox, over: threading.Event) -> None:
        super().__init__()
        self.wire, self.box, self.over = wire, box, over
        self.turns, self.worst = 0, 0.0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.over.is_set() and not self.wrong:
            try:
                self._turn()
            except Exception as error:
                self.wrong.append(repr(error))

    def _turn(self) -> None:
        self.turns += 1
        events = self.box.execute(f"count += 1\nprint(secret, count == {self.turns})")
        said = "".join(str(event.get("text", "")) for event in events)
        assert said.startswith(f"{SECRET} True"), events
        began = time.monotonic()
        fresh = self.wire.create(TEMPLATE, timeout=60)
        try:
            assert any("42" in str(event) for event in fresh.execute("6 * 7"))
            self.worst = max(self.worst, time.monotonic() - began)
        finally:
            fresh.kill()


def attacks(tenants: Tenants, hostile: RawBox, target: RawBox) -> dict[str, str]:
    """What each attack said. Run one after the other, as root of a box or as a stranger with the id."""
    said = {}
    copy = put_program(hostile, "enter_copy")
    contexts = threading.Thread(target=ask_for_contexts, args=(hostile,))
    contexts.start()
    said["copy"] = hostile.run(f"{copy} 10", user="root")[1]
    contexts.join()
    hostile.run(f"{put_program(hostile, 'linger')} 5", user="root")
    written = "timeout 10 sh -c 'until [ -s /tmp/linger.out ]; do sleep 0.05; done'; cat /tmp/linger.out"
    said["linger"] = hostile.run(written, user="root")[1]
    said["names"] = hostile.run(
        "cat /sys/block/*/loop/backing_file /proc/mounts /proc/*/cmdline 2>/dev/null | tr '\\0' ' '", user="root"
    )[1]
    stranger = Stranger(tenants.victim, "127.0.0.31")
    for port, path in ((INTERPRETER_PORT, "/execute"), (AGENT_PORT, "/envs"), (INTERPRETER_PORT, "/contexts")):
        statuses = stranger.statuses(target.id, port, "POST", path, {"code": "print(secret)"})
        said[path] = "refused" if statuses <= {401, 403, 404, 405, 429} else str(statuses)
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/fork"),
        ("GET", "/logs"),
        ("GET", "/metrics"),
    ):
        status = tenants.attacker.call(method, f"/sandboxes/{target.id}{path}", {} if method == "POST" else None).status
        said[f"{method} {path}"] = "refused" if status == 404 else str(status)
    return said


def ask_for_contexts(box: RawBox) -> None:
    end = time.monotonic() + 9
    while time.monotonic() < end:
        box.port(INTERPRETER_PORT, "POST", "/contexts", {"language": "python"}, headers={"X-Access-Token": box.token})
        time.sleep(1)  # the pace of the requests


def test_attacks_under_load_cost_the_neighbour_nothing(busy: tuple[Tenants, Load]) -> None:
    tenants, load = busy
    began = time.monotonic()
    target = tenants.victim.create(TEMPLATE, timeout=300)
    target.execute(f"secret, count = {SECRET!r}, 0")
    neighbour = Neighbour(tenants.victim, target, load.over)
    neighbour.start()
    said: list[dict[str, str]] = []
    while not said or time.monotonic() - began < SECONDS - 15:
        hostile = tenants.attacker.create(TEMPLATE, timeout=120)
        assert hostile.execute("40 + 2")
        said.append(attacks(tenants, hostile, target))
        hostile.kill()
    load.stop()
    neighbour.join(60)
    for one in said:
        assert "looked at 0" not in one["copy"], one["copy"]
        assert "looked at" in one["copy"], one["copy"]
        assert "FOREIGN" not in one["copy"], one["copy"]
        assert "TAKEN" not in one["copy"], one["copy"]
        assert "sent" in one["linger"], one["linger"]
        assert target.id not in one["names"]
        assert SECRET not in str(one)
        assert {value for name, value in one.items() if name.startswith(("/", "GET", "POST", "DELETE"))} == {
            "refused"
        }, one
    assert load.wrong == []
    assert neighbour.wrong == []
    assert min(load.done.values()) > 0, load.done
    assert neighbour.turns > 2
    assert neighbour.worst < PATIENCE, (neighbour.worst, load.done)
    assert time.monotonic() - began < 60
