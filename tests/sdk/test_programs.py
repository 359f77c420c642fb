# SPDX-License-Identifier: Apache-2.0
"""Programs that others wrote for the stock SDKs, with only the import changed.

Those of others are of tests/e2e/programs, driven by the same drivers (e2b-mcp-server is for a generation of the SDK
whose `Sandbox()` made sandboxes, which neither today's stock SDK nor ours does): modules named `e2b` and
`e2b_code_interpreter` that come from `cloche` (shims/) stand before the installed ones. That the stock package is not
used after all is looked at afterwards.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from table import COMPARED, ROOT

PROGRAMS = ROOT / "tests/e2e/programs"
SHIMS = Path(__file__).resolve().parent / "shims"
HERE = Path(__file__).resolve().parent
SECONDS = 120

sys.path.insert(0, str(ROOT / "tests/e2e/matrix"))
from clients import environment, install  # noqa: E402

# Says at the end of a program which client it had.
WITNESS = """
import atexit, sys
def said():
    mods = [m for m in ("e2b", "e2b_code_interpreter") if m in sys.modules]
    ours = mods and all("/shims/" in (sys.modules[m].__file__ or "") for m in mods) and "cloche" in sys.modules
    print("client:", "cloche" if ours else mods, file=sys.stderr)
atexit.register(said)
"""


@pytest.mark.parametrize("name", ["langchain", "smolagents", "pydantic_ai", "openai_agents"])
def test_a_program_of_others_runs_on_our_python_sdk(name: str, tmp_path: Path) -> None:
    folder = PROGRAMS / ".installed" / name
    install(PROGRAMS / f"{name}.lock", folder, "pypi")
    (tmp_path / "sitecustomize.py").write_text(WITNESS)
    places = [tmp_path, SHIMS, ROOT / "sdk/python/src", folder, *httpx_places()]
    variables = environment("url") | {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONSAFEPATH": "1"}
    driver = str(PROGRAMS / f"drive_{name}.py")
    program = f"import runpy, sitecustomize; runpy.run_path({driver!r}, run_name='__main__')"
    variables["CLOCHE_CLIENT"] = os.pathsep.join(map(str, places))
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env=variables, cwd="/", capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "client: []" in done.stderr or "client: cloche" in done.stderr, done.stderr[-500:]


def httpx_places() -> list[Path]:
    """Where httpx and what it needs are, for a program that does not bring them."""
    return [Path(sys.prefix) / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"]


STOCK = sorted((HERE / "programs").glob("*.py"))
if "typescript" in COMPARED:
    STOCK += sorted((HERE / "programs").glob("*.mjs"))


@pytest.mark.parametrize("sdk", ["stock", "ours"])
@pytest.mark.parametrize("program", STOCK, ids=lambda path: path.name)
def test_a_program_for_the_stock_sdk_runs_with_only_the_import_changed(
    program: Path, sdk: str, tmp_path: Path
) -> None:
    text = program.read_text()
    changed = re.sub(r"\be2b_code_interpreter\b|\be2b\b(?= import)", "cloche", text)
    changed = re.sub(r"'(@e2b/code-interpreter|e2b)'", "'cloche'", changed)
    assert changed != text
    differing = [(a, b) for a, b in zip(text.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert all("import" in line for line, _ in differing), differing
    copy = tmp_path / program.name
    copy.write_text(changed if sdk == "ours" else text)
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "cloche").symlink_to(ROOT / "sdk/typescript")
    for name in ("@e2b", "e2b"):
        (modules / name).symlink_to(ROOT / "tests/e2e/js/node_modules" / name)
    words = [sys.executable if program.suffix == ".py" else "node", str(copy)]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "sdk/python/src"), "UNIQUE": f"{sdk}{os.getpid()}"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    # The stock Python client's HTTP library (pyqwest) has threads of its own; one that comes back to Python when the
    # interpreter is already ending aborts the process, after the program's last line.
    aborted = sdk == "stock" and program.suffix == ".py" and done.returncode == -signal.SIGABRT and not done.stderr
    assert done.returncode == 0 or aborted, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1:] == ["done"], done.stdout[-500:]
