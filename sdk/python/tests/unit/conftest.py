# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Iterator

import pytest
from both import Both
from faulty import Faulty, faulty


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty() as made:
        yield made


@pytest.fixture(params=["sync", "async"])
def both(request: pytest.FixtureRequest) -> Both:
    return Both(request.param == "async")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY", "E2B_DOMAIN", "E2B_DEBUG", "E2B_HTTP_VERSION"):
        monkeypatch.delenv(name, raising=False)
