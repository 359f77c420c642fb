# SPDX-License-Identifier: Apache-2.0
"""A server of the file's own with two teams; what it left behind is looked at once, at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import Server
from support.state import leaked, look
from support.tenants import Tenants, two_teams


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    made = Server()
    data = str(made.data)
    before = look(data)
    made.start()
    try:
        yield two_teams(made)
    finally:
        if made.process and made.process.poll() is not None:
            made.start()
        made.close()
    assert leaked(before, data) == set()
