# SPDX-License-Identifier: Apache-2.0
"""A box for reading, shared by the tests of a file, and the same program through both halves of the package."""

from __future__ import annotations

import secrets
import time
from typing import Any, Callable, Iterator

import pytest

import cloche


@pytest.fixture(scope="module")
def shared() -> Iterator[cloche.Sandbox]:
    with cloche.Sandbox.create(timeout=300) as box:
        yield box


@pytest.fixture
def box() -> Iterator[cloche.Sandbox]:
    with cloche.Sandbox.create(timeout=120) as made:
        yield made


def eventually(check: Callable[[], Any], seconds: float = 30) -> Any:
    """What `check` gives as soon as it is true; what is waited for has no event of its own."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def unique() -> str:
    return secrets.token_hex(6)
