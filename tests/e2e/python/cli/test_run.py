# SPDX-License-Identifier: Apache-2.0
"""`cloche run`: code in a sandbox from the command line."""

from __future__ import annotations

import json
import os
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
