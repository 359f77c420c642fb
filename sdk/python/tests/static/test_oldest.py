# SPDX-License-Identifier: Apache-2.0
"""The oldest Python and the oldest httpx that the package says it works with (oldest.lock)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
OLDEST = HERE / ".oldest" / "bin" / "python"
SECONDS = 400
pytestmark = pytest.mark.timeout(SECONDS + 20)
# What compares with the stock SDK needs that, and with it a newer Python.
WITHOUT_STOCK = ["test_charts.py", "test_faults.py", "test_retries.py", "test_wire.py"]


def test_nothing_newer_than_python_3_9_is_used() -> None:
    words = [sys.executable, "-c", "from vermin import main; main()", "-q", "--no-tips", "-t=3.9-", "--violations"]
    words += ["src", "../charts/src"]
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@pytest.mark.parametrize("what", ["unit", "e2e"])
def test_it_works_with_the_oldest_python_and_httpx(what: str) -> None:
    files = [f"tests/unit/{name}" for name in WITHOUT_STOCK] if what == "unit" else ["tests/e2e/test_async.py"]
    done = subprocess.run(
        [str(OLDEST), "-m", "pytest", "-p", "no:cacheprovider", *files],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": str(HERE / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout or "100%" in done.stdout


def test_the_oldest_httpx_is_the_one_of_the_package_s_own_words() -> None:
    assert 'dependencies = ["httpx>=0.27,<1"]' in (HERE / "pyproject.toml").read_text()
    code = "import httpx; print(httpx.__version__)"
    done = subprocess.run([str(OLDEST), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.27.0"
