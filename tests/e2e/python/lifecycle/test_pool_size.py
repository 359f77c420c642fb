# SPDX-License-Identifier: Apache-2.0
"""How many boxes are kept ready: more after a crowd, spare ones while nobody asks, and none of either for good."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.server import Server, own_server
from support.waiting import eventually, settled
from support.wire import RawBox

pytestmark = pytest.mark.timeout(300)
PATIENCE = 120
CROWD = 5
COMERS = 14
QUIET = 4  # seconds without a change


@pytest.fixture
def own() -> Iterator[Server]:
    with own_server(start=False) as server:
        yield server


def ready(server: Server) -> int:
    text = server.figures()
    found = re.search(r"^cloche_warm_boxes (\d+)", text, re.MULTILINE)
    assert found, text
    return int(found.group(1))


def full(server: Server) -> int:
    """One box of each template that everyone has; their Pythons may take a while to load."""
    with sqlite3.connect(f"file:{server.data}/cloche.db?mode=ro", uri=True) as rows:
        (count,) = rows.execute("select count(*) from template where public").fetchone()
    eventually(lambda: ready(server) == count, PATIENCE, state=lambda: f"{ready(server)} boxes ready of {count}")
    return count


def crowd(server: Server, comers: int) -> list[RawBox]:
    gate = threading.Barrier(comers)

    def come(_: int) -> RawBox:
        gate.wait()
        return server.wire.create()

    with ThreadPoolExecutor(comers) as threads:
        return list(threads.map(come, range(comers)))


def test_a_crowd_leaves_as_many_ready_as_it_missed_and_they_go_again(own: Server) -> None:
    own.start("--pool", "1", "--pool-crowd", str(CROWD), "--pool-calm-seconds", "6", "--pool-spare-percent", "0")
    usual = full(own)
    boxes = crowd(own, COMERS)
    assert len({box.id for box in boxes}) == COMERS
    seen = [usual]

    def count() -> int:
        seen.append(ready(own))
        return seen[-1]

    eventually(lambda: count() >= usual + CROWD, PATIENCE, every=0.02, state=lambda: (usual, max(seen)))
    eventually(lambda: count() <= usual, PATIENCE, every=0.02, state=lambda: (usual, seen[-1]))
    assert max(seen) == usual + CROWD
    assert settled(lambda: ready(own), QUIET) == usual


def test_spare_boxes_are_made_of_the_template_that_was_asked_for(own: Server) -> None:
    own.start("--pool", "1", "--pool-crowd", str(CROWD), "--pool-spare-percent", "2")
    usual = full(own)
    box = own.wire.create()
    eventually(lambda: ready(own) >= usual + CROWD, PATIENCE, state=lambda: (usual, ready(own)))
    assert settled(lambda: ready(own), QUIET) == usual + CROWD
    assert own.wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
    assert len(crowd(own, CROWD)) == CROWD
    assert settled(lambda: ready(own), QUIET) == usual + CROWD


def test_without_a_pool_nothing_is_ready(own: Server) -> None:
    own.start("--pool", "0", "--ready-pool", "0", "--pool-spare-percent", "2")
    crowd(own, 3)
    assert settled(lambda: ready(own), 2) == 0
