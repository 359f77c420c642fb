# SPDX-License-Identifier: Apache-2.0
"""How the examples are started: unchanged, each in a copy of its folder, with packages as locked and SDKs as built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
E2E = ROOT / "tests/e2e"
BUILD = ROOT / os.environ.get("BUILD", "build")
TYPESCRIPT = ROOT / "sdk/typescript"
SECONDS = 180
# What tsc wants of an example; node runs them without types.
CHECKED = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "node", "--skipLibCheck"]


def copied(name: str, into: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / name, into / name))


def run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def python(program: Path, *words: str, packages: Path | None = None, **variables: str) -> str:
    """Runs an example with our SDK and the clients of tests/e2e, or with the packages of a program there."""
    paths = [str(ROOT / "sdk/python/src")] + ([str(packages)] if packages else [])
    flags = ["-S"] if packages else []
    python_path = {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    return run([sys.executable, *flags, program.name, *words], program.parent, python_path | variables)


def installed(name: str) -> Path:
    return E2E / "programs/.installed" / name


def link(folder: Path, name: str, target: Path) -> None:
    place = folder / "node_modules" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def typescript(program: Path) -> str:
    """Runs an example after the compiler has looked at it."""
    folder = program.parent
    link(folder, "cloche", TYPESCRIPT)
    link(folder, "e2b", E2E / "js/node_modules/e2b")
    link(folder, "@types/node", TYPESCRIPT / "node_modules/@types/node")
    (folder / "package.json").write_text('{"type": "module"}')
    tools = TYPESCRIPT / "node_modules/.bin"
    run([str(tools / "tsc"), *CHECKED, program.name], folder, {})
    run([str(tools / "esbuild"), program.name, "--outfile=program.js", "--target=node20"], folder, {})
    return run(["node", "program.js"], folder, {})


def compiled(folder: Path) -> Path:
    """Makes the C example against an installed libcloche."""
    stage = BUILD / "sdk/stage/libcloche"
    (found,) = stage.rglob("libcloche.pc")
    where = {"PKG_CONFIG_PATH": str(found.parent), "PKG_CONFIG_SYSROOT_DIR": str(stage), "CFLAGS": "-Werror"}
    run(["make"], folder, where)
    return folder / "untrusted"


def libraries() -> str:
    (found,) = (BUILD / "sdk/stage/libcloche").rglob("libcloche.so")
    return str(found.parent)
