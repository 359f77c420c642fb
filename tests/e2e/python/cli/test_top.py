# SPDX-License-Identifier: Apache-2.0
"""`cloche top`: what running sandboxes use, live."""

from __future__ import annotations

import json
from typing import Any

import e2b_code_interpreter as interpreter

from cli.conftest import Cloche
from support.terminal import Terminal
from support.waiting import eventually


def test_a_table_shows_what_a_sandbox_uses(cloche: Cloche, box: interpreter.Sandbox) -> None:
    def measured() -> Any:
        rows = json.loads(cloche("top", "--json", "-n", "1").stdout)
        return next((row for row in rows if row["sandboxID"] == box.sandbox_id and "memUsed" in row), None)

    row = eventually(measured)
    assert 0 < row["memUsed"] <= row["memTotal"]
    done = cloche("top", "-n", "1")
    assert done.returncode == 0
    assert done.stdout.startswith(b"ID ")
    assert box.sandbox_id.encode() in done.stdout
    assert b"\033" not in done.stdout


def test_a_terminal_is_renewed_and_given_back(box: interpreter.Sandbox) -> None:
    terminal = Terminal("top")
    assert b"\033[?1049h" in terminal.until(box.sandbox_id.encode())
    terminal.until(b"\033[H")
    terminal.until(box.sandbox_id.encode())
    terminal.type("\x03")
    terminal.until(b"\033[?1049l")
    assert terminal.end() == 0
