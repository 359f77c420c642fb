# SPDX-License-Identifier: Apache-2.0
"""How many boxes are kept ready: more after a crowd, spare ones while nobody asks, and none of either for good."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.server import Server, own_server
from support.wire import RawBox

pytestmark = pytest.mark.timeout(300)
PATIENCE = 120
CROWD = 5
COMERS = 14


@pytest.fixture
def own() -> Iterator[Server]:
    with own_server(start=False) as server:
        yield server


def shelf(server: Server) -> int:
    text = server.wire.call("GET", "/metrics").text
    found = re.search(r"^cloche_warm_boxes (\d+)", text, re.MULTILINE)
    assert found, text
    return int(found.group(1))


def full(server: Server) -> int:
    """One box of each template that everyone has; their Pythons may take a while to load."""
    with sqlite3.connect(f"file:{server.data}/cloche.db?mode=ro", uri=True) as rows:
        (count,) = rows.execute("select count(*) from template where public").fetchone()
    deadline = time.monotonic() + PATIENCE
    while (now := shelf(server)) != count:
        assert time.monotonic() < deadline, f"{now} boxes ready of {count}"
        time.sleep(0.05)
    return count


def settled(server: Server, quiet: float = 4) -> int:
    """The count that nothing has changed for a while."""
    deadline = time.monotonic() + PATIENCE
    count, since = shelf(server), time.monotonic()
    while time.monotonic() - since < quiet:
        assert time.monotonic() < deadline, f"{count} boxes ready, and still moving"
        time.sleep(0.1)
        if (now := shelf(server)) != count:
            count, since = now, time.monotonic()
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
    deadline = time.monotonic() + PATIENCE
    most = 0
    while most < usual + CROWD:
        assert time.monotonic() < deadline, f"{most} boxes ready at most, {usual} before the crowd"
        most = max(most, shelf(own))
        time.sleep(0.02)
    while (now := shelf(own)) > usual:
        assert time.monotonic() < deadline, f"{now} boxes ready, {usual} before the crowd"
        most = max(most, now)
        time.sleep(0.02)
    assert most == usual + CROWD
    assert settled(own) == usual


def test_spare_boxes_are_made_of_the_template_that_was_asked_for(own: Server) -> None:
    own.start("--pool", "1", "--pool-crowd", str(CROWD), "--pool-spare-percent", "2")
    usual = full(own)
    box = own.wire.create()
    deadline = time.monotonic() + PATIENCE
    while (now := shelf(own)) < usual + CROWD:
        assert time.monotonic() < deadline, f"{now} boxes ready, {usual} before"
        time.sleep(0.05)
    assert settled(own) == usual + CROWD
    assert own.wire.call("DELETE", f"/sandboxes/{box.id}").status == 204
    assert len(crowd(own, CROWD)) == CROWD
    assert settled(own) == usual + CROWD


def test_without_a_pool_nothing_is_ready(own: Server) -> None:
    own.start("--pool", "0", "--ready-pool", "0", "--pool-spare-percent", "2")
    crowd(own, 3)
    assert settled(own, 2) == 0
