# SPDX-License-Identifier: Apache-2.0
"""A gateway between boxes and an internet of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.egress_lab import Lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    made = Lab()
    try:
        yield made
    finally:
        made.close()
