# SPDX-License-Identifier: Apache-2.0
"""What the template suites share: a workshop of either flavour, and a second team."""

from __future__ import annotations

import os
import subprocess

import pytest

from support.recipes import Workshop
from support.wire import Wire


@pytest.fixture(scope="module", params=["sync", "async"])
def workshop(request: pytest.FixtureRequest) -> Workshop:
    return Workshop(request.param)


def cloche(*words: str) -> str:
    done = subprocess.run(
        [os.environ["CLOCHE_BIN"], *words], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def stranger(wire: Wire, unique: str) -> Wire:
    """A key of another team."""
    team = cloche("team", "create", f"Team {unique}")
    return Wire(wire.url, cloche("key", "create", "for a test", "--team", team))
