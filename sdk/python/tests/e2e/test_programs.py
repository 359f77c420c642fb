# SPDX-License-Identifier: Apache-2.0
"""Programs written for the stock SDKs print the same with only their imports changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
PROGRAMS = HERE.parents[1] / "programs"
QUICKSTART = HERE.parents[4] / "scripts" / "quickstart.py"
IMPORT = re.compile(r"^(from|import) (e2b_code_interpreter|e2b)\b", re.MULTILINE)


def printed(source: str, directory: Path, template: str) -> str:
    program = directory / "program.py"
    program.write_text(source)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=directory,
        env={**os.environ, "TEMPLATE_NAME": template},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "program",
    [QUICKSTART, PROGRAMS / "analysis.py", PROGRAMS / "streaming.py", PROGRAMS / "template_build.py"],
    ids=lambda program: program.stem,
)
def test_a_program_prints_the_same_with_its_import_changed(program: Path, tmp_path: Path, unique: str) -> None:
    stock = program.read_text()
    ours, changed = IMPORT.subn(r"\1 cloche", stock)
    assert changed > 0
    assert "e2b" not in re.sub(r"#.*|\"\"\".*?\"\"\"", "", ours, flags=re.DOTALL)
    (tmp_path / "stock").mkdir()
    (tmp_path / "ours").mkdir()
    theirs = printed(stock, tmp_path / "stock", f"{unique}-stock")
    mine = printed(ours, tmp_path / "ours", f"{unique}-ours")
    assert mine == theirs
    assert len(mine.splitlines()) >= 3
