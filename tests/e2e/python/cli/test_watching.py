# SPDX-License-Identifier: Apache-2.0
"""`cloche logs`, `events` and `edit` of a named server."""

from __future__ import annotations

import json
from pathlib import Path

import e2b_code_interpreter as interpreter

from cli.conftest import URL, Cloche
from support.terminal import Terminal
from support.waiting import eventually

THERE = ("--url", URL)


def test_logs_are_told_once_and_cannot_control_a_terminal(cloche: Cloche, box: interpreter.Sandbox) -> None:
    box.commands.run("for i in $(seq 1 40); do echo line-$i; done; printf 'bad\\033[2Jend\\n'")
    eventually(lambda: b"bad?[2Jend" in cloche("logs", *THERE, box.sandbox_id).stdout)
    seen = cloche("logs", *THERE, box.sandbox_id).stdout.decode()
    assert "\033" not in seen
    words = seen.split()
    assert [words.count(f"line-{i}") for i in range(1, 41)] == [1] * 40
    lines = cloche("logs", *THERE, "--json", box.sandbox_id).stdout.splitlines()
    assert any("bad\033[2Jend" in json.loads(line)["message"] for line in lines)


def test_followed_logs_go_on_until_the_sandbox_ends() -> None:
    made = interpreter.Sandbox.create("base", timeout=60)
    try:
        made.commands.run("echo first-words")
        terminal = Terminal("logs", "-f", *THERE, made.sandbox_id)
        terminal.until(b"first-words")
        made.commands.run("echo second-words")
        assert b"first-words" not in terminal.until(b"second-words")
    finally:
        made.kill()
    assert terminal.end() == 0


def test_events_of_one_sandbox_and_what_comes(cloche: Cloche) -> None:
    made = interpreter.Sandbox.create("base", timeout=60)
    try:
        out = eventually(lambda: cloche("events", *THERE, "--json", made.sandbox_id).stdout)
        assert json.loads(out.splitlines()[0])["type"] == "sandbox.lifecycle.created"
        terminal = Terminal("events", "-f", *THERE, made.sandbox_id)
        terminal.until(b"sandbox.lifecycle.created")
    finally:
        made.kill()
    assert b"created" not in terminal.until(b"sandbox.lifecycle.killed")
    terminal.type("\x03")
    assert terminal.end() != 0


def test_edit_writes_back_what_was_changed(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    box.files.write("/tmp/note.txt", "old words\n")
    env = {"VISUAL": "", "EDITOR": "sed -i s/old/new/", "TMPDIR": str(tmp_path)}
    done = cloche("edit", f"{box.sandbox_id}:/tmp/note.txt", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert box.files.read("/tmp/note.txt") == "new words\n"
    again = cloche("edit", f"{box.sandbox_id}:/tmp/note.txt", env=env)
    assert (again.returncode, again.stderr) == (0, b"cloche: nothing was changed\n")
    assert list(tmp_path.iterdir()) == []


def test_edit_does_not_undo_what_others_changed(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    box.files.write("/tmp/note.txt", "old words\n")
    script = tmp_path / "editor"
    theirs = f'echo theirs | "$CLOCHE_BIN" cp /dev/stdin {box.sandbox_id}:/tmp/note.txt'
    script.write_text(f'#!/bin/sh\necho mine >"$1"\n{theirs}\n')
    script.chmod(0o755)
    done = cloche(
        "edit", f"{box.sandbox_id}:/tmp/note.txt", env={"VISUAL": str(script), "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 1
    assert b"meanwhile" in done.stderr
    assert box.files.read("/tmp/note.txt") == "theirs\n"
    copy = Path(done.stderr.decode().split("your copy is ")[1].strip())
    assert copy.read_text() == "mine\n"
