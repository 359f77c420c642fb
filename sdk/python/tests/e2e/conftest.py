# SPDX-License-Identifier: Apache-2.0
"""A box of a test's own, and one that the tests of a file share."""

from __future__ import annotations

import secrets
from typing import Iterator

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


@pytest.fixture
def unique() -> str:
    return secrets.token_hex(6)
