# SPDX-License-Identifier: Apache-2.0
"""`cloche run`: code in a sandbox from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import e2b_code_interpreter as interpreter

from cli.conftest import Cloche
from support.terminal import Terminal

PICTURE = b"import matplotlib.pyplot as p; p.plot([1, 2]); p.show()"


def running() -> set[str]:
    found: set[str] = set()
    pages = interpreter.Sandbox.list()
    while pages.has_next:
        found |= {item.sandbox_id for item in pages.next_items()}
    return found


def test_code_of_standard_input_runs_in_a_sandbox_that_ends(cloche: Cloche) -> None:
    before = running()
    done = cloche("run", given=b"import sys; print('out'); print('err', file=sys.stderr); 6 * 7")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n42\n", b"err\n")
    assert running() == before


def test_a_file_in_another_language_runs(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("echo $((6 * 7))")
    done = cloche("run", "-l", "bash", "--box", box.sandbox_id, "a.sh")
    assert (done.returncode, done.stdout) == (0, b"42\n"), done.stderr


def test_a_named_sandbox_keeps_its_state(cloche: Cloche, box: interpreter.Sandbox) -> None:
    assert cloche("run", "--box", box.sandbox_id, given=b"kept = 5").returncode == 0
    done = cloche("run", "--box", box.sandbox_id, "-", given=b"kept + 1")
    assert done.stdout == b"6\n"
    assert box.is_running()


def test_a_kept_sandbox_is_named_and_goes_on(cloche: Cloche) -> None:
    done = cloche("run", "--keep", given=b"kept = 7")
    made = done.stderr.split(b"sandbox ")[1].split(b" ")[0].decode()
    try:
        assert cloche("run", "--box", made, given=b"kept").stdout == b"7\n"
    finally:
        interpreter.Sandbox.kill(made)


def test_an_exception_is_told_on_stderr_with_status_1(cloche: Cloche, box: interpreter.Sandbox) -> None:
    done = cloche("run", "--box", box.sandbox_id, given=b"raise ValueError('wrong \\x1b[2J')")
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"ValueError: wrong" in done.stderr
    assert b"\033" not in done.stderr


def test_pictures_are_saved_under_free_names(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "cloche-1.png").write_bytes(b"mine")
    done = cloche("run", "--box", box.sandbox_id, given=PICTURE)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"cloche-2.png" in done.stderr
    assert (tmp_path / "cloche-1.png").read_bytes() == b"mine"
    assert (tmp_path / "cloche-2.png").read_bytes().startswith(b"\x89PNG")


def test_a_terminal_that_can_shows_pictures(box: interpreter.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(PICTURE)
    words = ("run", "--box", box.sandbox_id, str(tmp_path / "a.py"))
    kitty = Terminal(*words, env={"TERM": "xterm-kitty"})
    kitty.until(b"\033_Gf=100,a=T,m=1;iVBOR")
    assert kitty.end() == 0
    iterm = Terminal(*words, env={"TERM": "xterm", "TERM_PROGRAM": "iTerm.app"})
    iterm.until(b"\033]1337;File=inline=1:iVBOR")
    assert iterm.end() == 0


def sixels(text: bytes) -> dict[tuple[int, int], tuple[int, int, int]]:
    """A picture of sixels as pixels, with colours in percent."""
    colours: dict[int, tuple[int, int, int]] = {}
    pixels: dict[tuple[int, int], tuple[int, int, int]] = {}
    x = y = colour = 0
    words = r'"1;1;\d+;\d+|#\d+;2;\d+;\d+;\d+|#\d+|!\d+[?-~]|[?-~]|\$|-'
    parts = re.findall(words, text.decode())
    assert "".join(parts) == text.decode()
    for part in parts[1:]:
        if part[0] == "#":
            colour, *rest = (int(n) for n in part[1:].split(";"))
            if rest:
                colours[colour] = (rest[1], rest[2], rest[3])
        elif part == "$":
            x = 0
        elif part == "-":
            x, y = 0, y + 6
        else:
            run = int(part[1:-1]) if part[0] == "!" else 1
            for place in ((x + i, y + bit) for i in range(run) for bit in range(6)):
                if (ord(part[-1]) - 63) >> (place[1] - y) & 1:
                    assert place not in pixels
                    pixels[place] = colours[colour]
            x += run
    return pixels


def test_a_terminal_that_says_it_can_gets_sixels(box: interpreter.Sandbox, tmp_path: Path) -> None:
    code = "import numpy as n, PIL.Image as i; a = n.zeros((20, 30, 3), 'uint8'); a[:, :10] = (255, 0, 0)\n"
    code += "a[:, 10:20] = (255, 255, 255); i.fromarray(a)"
    (tmp_path / "a.py").write_text(code)
    words = ("run", "--box", box.sandbox_id, str(tmp_path / "a.py"))
    plain = {"TERM": "xterm-256color", "TERM_PROGRAM": "", "LC_TERMINAL": "", "KITTY_WINDOW_ID": ""}
    terminal = Terminal(*words, env=plain)
    terminal.until(b"\033[c")
    terminal.type("\033[?62;4;22c")
    terminal.until(b"\033P0;1q")
    picture = sixels(terminal.until(b"\033\\"))
    assert terminal.end() == 0
    assert len(picture) == 600
    assert picture[3, 3] == (100, 0, 0)
    assert picture[15, 19] == (100, 100, 100)
    assert picture[29, 0] == (0, 0, 0)


def test_a_terminal_that_cannot_gets_a_file(box: interpreter.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(PICTURE)
    words = ("run", "--box", box.sandbox_id, "--out", str(tmp_path), str(tmp_path / "a.py"))
    assert Terminal(*words, env={"TERM": "xterm"}).end() == 0
    assert (tmp_path / "cloche-1.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_picture_does_not_reach_the_terminal(box: interpreter.Sandbox, tmp_path: Path) -> None:
    """A sandbox chooses the bytes of its pictures: what libpng refuses is kept in a file and shown nowhere."""
    code = "import base64\nclass P:\n    def _repr_mimebundle_(self, **_):\n"
    code += "        png = b'\\x89PNG\\r\\n\\x1a\\n' + b'\\x1b]0;owned\\x07' * 40\n"
    code += "        return {'image/png': base64.b64encode(png).decode()}\n"
    (tmp_path / "a.py").write_text(code + "P()")
    words = ("run", "--box", box.sandbox_id, str(tmp_path / "a.py"))
    terminal = Terminal(*words, env={"CLOCHE_PICTURES": "sixel"}, cwd=tmp_path)
    shown = terminal.until(b"cloche-1.png")
    assert b"owned" not in shown
    assert b"\033P" not in shown
    assert terminal.end() == 0


def test_json_has_the_whole_execution(cloche: Cloche, box: interpreter.Sandbox) -> None:
    done = cloche("run", "--json", "--box", box.sandbox_id, given=b"print('a'); 1 / 0")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["sandboxId"] == box.sandbox_id
    assert "".join(told["logs"]["stdout"]) == "a\n"
    assert told["error"]["name"] == "ZeroDivisionError"
    assert told["results"] == []
    done = cloche("run", "--json", "--box", box.sandbox_id, given=b"[1, 2]")
    assert json.loads(done.stdout)["results"][0]["text"] == "[1, 2]"


def test_ctrl_c_interrupts_the_code_and_leaves_the_state(box: interpreter.Sandbox, tmp_path: Path) -> None:
    code = "state = 'kept'\nprint('begun', flush=True)\nimport time\nwhile True: time.sleep(0.05)\n"
    (tmp_path / "loop.py").write_text(code)
    terminal = Terminal("run", "--box", box.sandbox_id, str(tmp_path / "loop.py"))
    terminal.until(b"begun")
    terminal.type("\x03")
    terminal.until(b"KeyboardInterrupt")
    assert terminal.end() == 130
    assert box.run_code("state").text == "kept"


def test_a_run_that_is_terminated_ends_its_sandbox(tmp_path: Path) -> None:
    before = running()
    (tmp_path / "loop.py").write_text("print('begun', flush=True)\nwhile True: pass\n")
    terminal = Terminal("run", str(tmp_path / "loop.py"))
    terminal.until(b"begun")
    assert len(running() - before) == 1
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.end() == 130
    assert running() == before


def test_code_that_takes_too_long_fails(cloche: Cloche, box: interpreter.Sandbox) -> None:
    done = cloche("run", "-t", "1", "--box", box.sandbox_id, given=b"while True: pass")
    assert done.returncode == 1
    assert done.stderr.startswith(b"cloche: ")


def test_what_cannot_be_is_told(cloche: Cloche, box: interpreter.Sandbox) -> None:
    wrong = cloche("run", "--box", box.sandbox_id, "--keep", given=b"1")
    assert wrong.returncode == 2
    missing = cloche("run", "missing.py")
    assert (missing.returncode, missing.stderr) == (1, b"cloche: missing.py: No such file or directory\n")
    assert cloche("run", "--box", "inone", given=b"1").returncode == 1
