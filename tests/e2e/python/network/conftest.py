# SPDX-License-Identifier: Apache-2.0
"""A world and a server in it, of each file's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import own_server
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
    with own_server(made=Abroad(world)) as made:
        yield made
    with world.inside():
        assert links() == {"lo", "out"}
        assert tables() == ""
