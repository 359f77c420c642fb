# SPDX-License-Identifier: Apache-2.0
"""A server of the file's own with two teams; what it left behind is looked at once, at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server import own_server
from support.tenants import Tenants, two_teams


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    with own_server() as made:
        yield two_teams(made)
