# SPDX-License-Identifier: Apache-2.0
"""Types, style, and that what is made from other files is up to date."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

HERE = Path(__file__).resolve().parents[2]
# Checkers compute, and share the machine with other suites.
SECONDS = 400
pytestmark = pytest.mark.timeout(SECONDS + 20)


def passes(*command: str) -> None:
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_mypy_strict_finds_nothing() -> None:
    passes(sys.executable, "-m", "mypy")


def test_mypy_strict_finds_nothing_in_the_examples() -> None:
    # Frameworks are not installed here, or have no types: what comes from them is Any.
    foreign = ["--disable-error-code=import-not-found", "--disable-error-code=import-untyped"]
    foreign += ["--allow-untyped-decorators", "--no-warn-return-any"]
    examples = sorted(str(path) for path in (HERE.parents[1] / "examples").glob("*/*.py"))
    assert examples
    passes(sys.executable, "-m", "mypy", *foreign, *examples)


def test_pyright_strict_finds_nothing() -> None:
    node = shutil.which("node")
    assert node, "pyright needs node"
    program = HERE / "tools" / "pyright" / "node_modules" / "pyright" / "index.js"
    passes(node, str(program), "--pythonpath", sys.executable)


def test_ruff_finds_nothing() -> None:
    passes(sys.executable, "-m", "ruff", "check", "--quiet", "src", "tests", "tools")


def test_the_blocking_half_is_what_the_asynchronous_half_makes() -> None:
    passes(sys.executable, "tools/unasync.py", "--check")


def names(module: str) -> List[str]:
    code = f"import {module} as m, sys; sys.stdout.write('\\n'.join(m.__all__))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("name", names("cloche"))
def test_every_public_name_can_be_imported(name: str) -> None:
    import cloche

    assert getattr(cloche, name) is not None


def test_importing_the_package_loads_no_http_library() -> None:
    code = "import cloche, sys; from cloche import Sandbox, AsyncSandbox; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
