# SPDX-License-Identifier: Apache-2.0
"""The first moment of truth: the stock code-interpreter SDK, from create to kill."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path

import e2b_code_interpreter as interpreter
import pytest
from PIL import Image

from support.either import Either

SCRIPT = Path(__file__).parents[4] / "scripts" / "quickstart.py"

SAID = """\
x is 2
table columns: {'a': [1, 2], 'b': [3, 4]}
table is html: True
chart type: line
error: ZeroDivisionError - division by zero
traceback has the line: True
file: hello from outside
command: 18 bytes, exit code 0
listed: True
running after kill: False
"""


def test_the_readme_script_prints_what_it_promises(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert (done.stdout, done.returncode) == (SAID, 0), done.stderr
    with Image.open(tmp_path / "chart.png") as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 200


async def test_state_lives_between_cells(cell: Either) -> None:
    assert (await cell.run_code("x = 1")).text is None
    assert (await cell.run_code("x+=1; x")).text == "2"


async def test_a_pandas_table_has_html_text_and_data(cell: Either) -> None:
    done = await cell.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
    result = done.results[0]
    assert result.is_main_result
    assert "<table" in result.html
    assert "<td>x</td>" in result.html
    assert result.data == {"a": [1, 2], "b": ["x", "y"]}
    assert "a" in result.text


async def test_a_figure_is_a_real_picture(cell: Either) -> None:
    code = """
        import matplotlib.pyplot as plt
        plt.plot([1, 2, 3], [1, 4, 9], color="red", linewidth=5)
        plt.show()
    """
    done = await cell.run_code(code)
    assert done.error is None
    with Image.open(io.BytesIO(base64.b64decode(done.results[0].png))) as picture:
        picture.load()
        pixels = picture.convert("RGB")
        assert pixels.width > 300
        assert pixels.height > 200
        colours = {colour for _, colour in pixels.getcolors(1 << 24)}
        assert (255, 0, 0) in colours
        assert (255, 255, 255) in colours


async def test_an_exception_has_name_value_and_traceback(cell: Either) -> None:
    done = await cell.run_code("def f():\n    raise KeyError('missing')\nf()")
    assert done.error.name == "KeyError"
    assert done.error.value == "'missing'"
    assert "raise KeyError" in done.error.traceback
    assert "line 2" in done.error.traceback
    assert done.text is None


async def test_files_and_commands_see_the_same_disk(cell: Either, unique: str) -> None:
    path = f"/home/user/{unique}.txt"
    await cell.files.write(path, "from outside")
    assert await cell.files.read(path) == "from outside"
    done = await cell.commands.run(f"cat {path}; exit 0")
    assert (done.stdout, done.exit_code) == ("from outside", 0)
    assert (await cell.run_code(f"open({path!r}).read()")).text == "from outside"


async def test_a_command_reports_its_exit_code(cell: Either) -> None:
    with pytest.raises(interpreter.CommandExitException) as caught:
        await cell.commands.run("echo out; echo err >&2; exit 7")
    assert caught.value.exit_code == 7
    assert caught.value.stdout == "out\n"
    assert caught.value.stderr == "err\n"


async def test_list_shows_a_box_while_it_lives() -> None:
    def listed() -> set[str]:
        pages = interpreter.Sandbox.list()
        found: set[str] = set()
        while pages.has_next:
            found |= {item.sandbox_id for item in pages.next_items()}
        return found

    made = interpreter.Sandbox.create(timeout=60)
    try:
        assert made.sandbox_id in listed()
        assert made.is_running()
    finally:
        assert made.kill()
    assert made.sandbox_id not in listed()
    assert not made.is_running()
    assert not made.kill()
