# SPDX-License-Identifier: Apache-2.0
"""A sandbox for the commands, and the commands as programs see them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import e2b_code_interpreter as interpreter
import pytest

CLOCHE = os.environ["CLOCHE_BIN"]
URL = os.environ["E2B_API_URL"]
Cloche = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def box() -> Iterator[interpreter.Sandbox]:
    with interpreter.Sandbox.create(timeout=300) as made:
        yield made


@pytest.fixture
def cloche(tmp_path: Path) -> Cloche:
    def run(
        *words: str, given: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [CLOCHE, *words],
            input=given,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
        )

    return run
