# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a named server, and how a server is named."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import e2b_code_interpreter as interpreter
import pytest

from cli.conftest import CLOCHE, URL, Cloche
from support.terminal import Terminal

KEY = os.environ["E2B_API_KEY"]
NAMELESS = dict.fromkeys(("CLOCHE_URL", "CLOCHE_KEY", "E2B_API_URL", "E2B_API_KEY", "E2B_SANDBOX_URL"), "")


def test_a_sandbox_is_made_listed_paused_resumed_copied_kept_and_ended(cloche: Cloche) -> None:
    there = ("--url", URL)
    made = cloche("new", "base", "-t", "200").stdout.decode().strip()
    ids, kept = [made], ""
    try:
        heads, *rows = cloche("ps", *there).stdout.decode().splitlines()
        assert heads.split() == ["ID", "STATE", "TEMPLATE", "AGE", "LEFT"]
        row = next(row.split() for row in rows if row.startswith(made))
        assert row[1:3] == ["running", "base"]
        assert row[4] in ("3m", "199s")
        assert cloche("pause", *there, made).returncode == 0
        listed = json.loads(cloche("ps", *there, "--json").stdout)
        assert [box["state"] for box in listed if box["sandboxID"] == made] == ["paused"]
        assert cloche("resume", *there, made).returncode == 0
        ids += cloche("fork", *there, made, "2").stdout.decode().split()
        assert len(set(ids)) == 3
        kept = json.loads(cloche("snapshot", "--json", made).stdout)[0]["snapshotID"]
        ids.append(cloche("new", kept).stdout.decode().strip())
    finally:
        done = cloche("kill", *there, *ids)
    assert (done.returncode, done.stderr) == (0, b"")
    assert interpreter.Sandbox.delete_snapshot(kept)
    again = cloche("kill", *there, made)
    assert (again.returncode, again.stderr) == (1, f"cloche: {made}: no such sandbox\n".encode())


def test_a_user_who_is_not_root_reaches_the_server_by_its_url() -> None:
    with interpreter.Sandbox.create("base", timeout=60) as made:
        program = os.open(CLOCHE, os.O_PATH)
        try:
            done = subprocess.run(
                [f"/proc/self/fd/{program}", "ps"],
                pass_fds=[program],
                user=65534,
                group=65534,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        finally:
            os.close(program)
        assert done.returncode == 0, done.stderr
        assert made.sandbox_id in done.stdout


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {**NAMELESS, "HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}


def test_without_a_server_the_remedy_is_told(cloche: Cloche, home: dict[str, str]) -> None:
    done = cloche("new", env=home)
    assert done.returncode == 2
    assert b"cloche login" in done.stderr


def test_login_keeps_a_profile_that_commands_use(cloche: Cloche, home: dict[str, str], tmp_path: Path) -> None:
    terminal = Terminal("login", env=home)
    terminal.until(b"URL: ")
    terminal.type(URL + "\n")
    terminal.until(b"API key: ")
    terminal.type(KEY + "\n")
    shown = terminal.until(b"is kept in")
    assert terminal.end() == 0
    assert KEY.encode() not in shown
    file = tmp_path / ".config/cloche/profiles"
    assert file.stat().st_mode & 0o7777 == 0o600
    assert cloche("ps", "--profile", "default", env=home).returncode == 0
    made = cloche("new", "base", env=home).stdout.decode().strip()
    assert cloche("kill", "--profile", "default", made, env=home).returncode == 0
    other = cloche("new", "--url", "http://127.0.0.1:9", env=home)
    assert other.returncode == 2
    assert b"give a key" in other.stderr
    file.chmod(0o644)
    refused = cloche("new", env=home)
    assert refused.returncode == 1
    assert b"chmod 600" in refused.stderr


def test_login_with_a_wrong_key_keeps_nothing(cloche: Cloche, home: dict[str, str], tmp_path: Path) -> None:
    done = cloche("login", "--url", URL, given=b"e2b_" + b"0" * 40 + b"\n", env=home)
    assert done.returncode == 1, done.stderr
    assert not (tmp_path / ".config").exists()


def test_every_command_has_a_help_text(cloche: Cloche) -> None:
    for command in ("run", "exec", "new", "cp", "ls", "cat", "login", "snapshot"):
        done = cloche(command, "--help")
        assert done.returncode == 0
        assert done.stdout.decode().startswith(f"cloche {command} - ")
        assert b"--profile" in done.stdout
    wrong = cloche("new", "--wrong")
    assert wrong.returncode == 2
    assert b"--wrong" in wrong.stderr


def test_root_on_the_server_gets_json_too(cloche: Cloche) -> None:
    with interpreter.Sandbox.create("base", timeout=60) as made:
        listed = json.loads(cloche("ps", "--json").stdout)
        (row,) = [row for row in listed if row["sandboxID"] == made.sandbox_id]
        assert (row["state"], row["template"]) == ("running", "base")
    keys = json.loads(cloche("key", "list", "--json").stdout)
    assert any(key["name"] == "first key" for key in keys)
    key = json.loads(cloche("key", "create", "--json", "by root").stdout)["key"]
    assert key.startswith("e2b_")
    (made_key,) = [k["id"] for k in json.loads(cloche("key", "list", "--json").stdout) if k["name"] == "by root"]
    assert cloche("key", "delete", made_key).returncode == 0
    templates = json.loads(cloche("template", "list", "--json").stdout)
    assert {"base", "code-interpreter-v1"} <= {row["name"] for row in templates}
    assert all(isinstance(row["public"], bool) for row in templates)
    for what in ("team", "volume", "secret"):
        assert isinstance(json.loads(cloche(what, "list", "--json").stdout), list)
    assert json.loads(cloche("team", "list", "--json").stdout)[0]["teamID"]
