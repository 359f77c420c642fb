# SPDX-License-Identifier: Apache-2.0
"""The quick starts of docs/sdk.md do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from table import COMPARED, ROOT

STAGE = ROOT / os.environ.get("BUILD", "build") / "sdk/stage/libcloche/usr"
EXPECTED = {"c": "42", "python": "3 data.csv", "ts": "3 data.csv"}


def block(language: str) -> str:
    (code, *_) = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/sdk.md").read_text(), re.S)
    return code


def c_program(folder: Path) -> tuple[list[str], dict[str, str]]:
    library = next(STAGE.rglob("libcloche.so")).parent
    (folder / "quick.c").write_text(block("c"))
    words = ["cc", "quick.c", f"-I{STAGE}/include", f"-L{library}", "-lcloche", "-o", "quick"]
    subprocess.run(words, cwd=folder, check=True)
    return ["./quick"], {"LD_LIBRARY_PATH": str(library)}


def python_program(folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "quick.py").write_text(block("python"))
    return [sys.executable, "quick.py"], {"PYTHONPATH": str(ROOT / "sdk/python/src")}


def ts_program(folder: Path) -> tuple[list[str], dict[str, str]]:
    """`await using` needs a compiler before Node 24."""
    (folder / "node_modules").mkdir()
    (folder / "node_modules/cloche").symlink_to(ROOT / "sdk/typescript")
    (folder / "quick.ts").write_text(block("ts"))
    esbuild = ROOT / "sdk/typescript/node_modules/.bin/esbuild"
    words = ["quick.ts", "--target=node20", "--format=esm", "--outfile=quick.mjs", "--log-level=error"]
    subprocess.run([esbuild, *words], cwd=folder, check=True)
    return ["node", "quick.mjs"], {}


@pytest.mark.parametrize("language", [name for name in EXPECTED if name != "ts" or "typescript" in COMPARED])
def test_the_quick_start_prints_what_it_should(language: str, tmp_path: Path) -> None:
    made = {"c": c_program, "python": python_program, "ts": ts_program}[language](tmp_path)
    words, variables = made
    environment = os.environ | variables
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert EXPECTED[language] in done.stdout, done.stdout
    assert len(block(language).strip().splitlines()) <= 12
