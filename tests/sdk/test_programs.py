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
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from table import COMPARED, ROOT

PROGRAMS = ROOT / "tests/e2e/programs"
SHIMS = Path(__file__).resolve().parent / "shims"
HERE = Path(__file__).resolve().parent
SECONDS = 120
STOCK_JS = "tests/e2e/js/node_modules"

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


PROGRAMS_OF_STOCK = [*sorted((HERE / "programs").glob("*.py")), ROOT / "scripts/quickstart.py"]
if "typescript" in COMPARED:
    PROGRAMS_OF_STOCK += [*sorted((HERE / "programs").glob("*.mjs")), ROOT / "scripts/quickstart.mjs"]


def with_our_import(text: str) -> str:
    """The program with other names of packages in its import lines, and nowhere else."""
    changed = re.sub(r"\be2b_code_interpreter\b|\be2b\b(?= import)", "cloche", text)
    changed = re.sub(r"'(@e2b/code-interpreter|e2b)'", "'cloche'", changed)
    differing = [a for a, b in zip(text.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert differing
    assert all("import" in line for line in differing), differing
    return changed


def start(program: Path, text: str, folder: Path, sdk: str) -> subprocess.Popen[str]:
    modules = folder / "node_modules"
    modules.mkdir(parents=True)
    for name, place in {"cloche": "sdk/typescript", "@e2b": STOCK_JS + "/@e2b", "e2b": STOCK_JS + "/e2b"}.items():
        if sdk == "ours" or name != "cloche":
            (modules / name).symlink_to(ROOT / place)
    shutil.copy(HERE / "programs/payload.txt", folder)
    (folder / program.name).write_text(text)
    words = [sys.executable if program.suffix == ".py" else "node", program.name]
    variables = os.environ | {"TEMPLATE_NAME": f"program-{sdk}{os.getpid()}"}
    if sdk == "ours":
        variables["PYTHONPATH"] = str(ROOT / "sdk/python/src")
    out = subprocess.PIPE
    return subprocess.Popen(words, cwd=folder, env=variables, stdout=out, stderr=out, text=True)


def ended(program: subprocess.Popen[str]) -> tuple[str, str, int]:
    try:
        out, err = program.communicate(timeout=SECONDS)
    finally:
        program.kill()
    return out, err, program.returncode


@pytest.mark.parametrize("program", PROGRAMS_OF_STOCK, ids=lambda path: path.name)
def test_a_program_for_the_stock_sdk_prints_the_same_with_only_the_import_changed(
    program: Path, tmp_path: Path
) -> None:
    text = program.read_text()
    theirs = start(program, text, tmp_path / "stock", "stock")
    mine = start(program, with_our_import(text), tmp_path / "ours", "ours")
    printed, said, status = ended(mine)
    stock_printed, stock_said, stock_status = ended(theirs)
    assert status == 0, said[-3000:]
    # The stock Python client's HTTP library (pyqwest) has threads of its own; one that comes back to Python while the
    # interpreter ends aborts the process, after everything was printed. That is told, and what was printed counts.
    if program.suffix == ".py" and stock_status == -signal.SIGABRT:
        warnings.warn(f"{program.name}: the stock client aborted at its end: {stock_said[-300:]}", stacklevel=1)
    else:
        assert stock_status == 0, stock_said[-3000:]
    assert printed == stock_printed
    assert len(printed.splitlines()) >= 3
