# SPDX-License-Identifier: Apache-2.0
"""Completions and manual pages come from the tables of the commands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cli.conftest import CLOCHE, Cloche


def complete(*words: str) -> list[str]:
    script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cloche'
    script += '; echo "${COMPREPLY[@]}"'
    command = ["bash", "-c", script, CLOCHE, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.split()


def test_bash_completes_commands_and_their_options() -> None:
    assert complete("cloche", "sna") == ["snapshot"]
    assert complete("cloche", "templ") == ["template"]
    assert complete("cloche", "run", "--la") == ["--language"]
    assert set(complete("cloche", "run", "--")) >= {"--box", "--json", "--profile", "--help"}
    assert complete("cloche", "run", "some") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command_and_option(cloche: Cloche, shell: str) -> None:
    text = cloche("completion", shell).stdout.decode()
    for word in ("snapshot", "template", "language", "profile", "keep"):
        assert word in text
    assert cloche("completion", "other").returncode == 2


def test_manual_pages_have_what_help_has(cloche: Cloche, tmp_path: Path) -> None:
    assert cloche("man", ".").returncode == 0
    pages = {page.stem for page in tmp_path.glob("*.1")}
    assert {"cloche", "cloche-run", "cloche-cp", "cloche-logs"} <= pages
    page = (tmp_path / "cloche-run.1").read_text()
    assert "\\fB\\-l\\fR, \\fB\\-\\-language\\fR LANG" in page
    overview = (tmp_path / "cloche.1").read_text()
    assert pages >= {f"cloche-{name}" for name in re.findall(r"^\.TP\n\.B (\w+)$", overview, re.M)}
    assert all("Usage: cloche" in (tmp_path / f"cloche-{name}.1").read_text() for name in ("serve", "mcp", "store"))
    assert all(f"cloche\\-{name.removeprefix('cloche-')} " in overview for name in pages - {"cloche"})
