# SPDX-License-Identifier: Apache-2.0
"""A world and a server in it, of each file's own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.state import look
from support.world import Abroad, World, links, tables


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    try:
        yield made
    finally:
        made.close()


def left(data: str) -> set[str]:
    """What this server still has on the machine; the links out there are other servers'."""
    return {line for line in look(data) if not line.startswith("link ")}


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Abroad]:
    """Afterwards the host is as it was: nothing the server or its boxes had is left on it."""
    made = Abroad(world)
    data = str(made.data)
    try:
        made.start()
        yield made
    finally:
        if made.process and made.process.poll() is not None:
            made.start()
        made.close()
    with world.inside():
        assert links() == {"lo", "out"}
        assert tables() == ""
    deadline = time.monotonic() + 60
    while left(data) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left(data) == set()
