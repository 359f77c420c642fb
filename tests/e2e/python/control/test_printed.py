# SPDX-License-Identifier: Apache-2.0
"""`cloche logs`, for the machine's own root."""

from __future__ import annotations

import os
import subprocess

import e2b


def logs(box: str) -> subprocess.CompletedProcess[str]:
    command = [os.environ["CLOCHE_BIN"], "logs", box]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


def test_what_a_box_printed_is_shown_while_it_lives_and_after() -> None:
    with e2b.Sandbox.create("base", timeout=60) as box:
        box.commands.run("echo to out; echo to err >&2; printf 'a\\033[2Jb\\n'")
        lines = [line.split(maxsplit=1)[1] for line in logs(box.sandbox_id).stdout.splitlines()]
        assert {"info  process: to out", "warn  process: to err"} <= set(lines)
        assert "info  process: a?[2Jb" in lines, "nothing that moves a cursor passes"
    ended = logs(box.sandbox_id)
    assert "process: to out" in ended.stdout


def test_a_box_nobody_knows_is_named() -> None:
    unknown = logs("inobodyknowsthisone00")
    assert unknown.returncode == 1
    assert "inobodyknowsthisone00" in unknown.stderr
