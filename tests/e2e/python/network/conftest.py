"""A world and a server in it, of each file's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.state import leaked, look
from support.world import Abroad, World, links, tables


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Abroad]:
    """Afterwards the host is as it was: nothing the server or its boxes had is left on it."""
    made = Abroad(world)
    data = str(made.data)
    before = look(data)
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
    mine = {line for line in leaked(before, data) if not line.startswith("link ")}
    assert mine == set()
