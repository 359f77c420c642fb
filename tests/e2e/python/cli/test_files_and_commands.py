# SPDX-License-Identifier: Apache-2.0
"""`cloche exec`, `cp`, `ls` and `cat`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import e2b_code_interpreter as interpreter

from cli.conftest import URL, Cloche
from support.terminal import Terminal


def test_exec_passes_input_output_and_status_on(cloche: Cloche, box: interpreter.Sandbox) -> None:
    given = os.urandom(300_000)
    done = cloche("exec", box.sandbox_id, "--", "sh", "-c", "cat; echo err >&2; exit 7", given=given)
    assert (done.returncode, done.stderr) == (7, b"err\n")
    assert done.stdout == given


def test_exec_with_a_terminal_passes_keys_and_size(box: interpreter.Sandbox) -> None:
    terminal = Terminal("exec", "-t", box.sandbox_id, "--", "bash", "--norc")
    terminal.type("stty size; tty; exit $((40 + 2))\n")
    terminal.until(b"/dev/pts/")
    assert terminal.end() == 42


def test_ctrl_c_without_a_terminal_ends_the_command(box: interpreter.Sandbox) -> None:
    terminal = Terminal("exec", box.sandbox_id, "--", "sh", "-c", "echo begun; exec sleep 300")
    terminal.until(b"begun")
    terminal.type("\x03")
    assert terminal.end() == 255


def test_shell_of_a_named_server_gives_the_exit_status(cloche: Cloche, box: interpreter.Sandbox) -> None:
    done = cloche("shell", "--url", URL, box.sandbox_id, "--", "sh", "-c", "echo there; exit 3")
    assert (done.returncode, done.stdout) == (3, b"there\n")


def test_exec_in_a_sandbox_that_ended_says_so(cloche: Cloche) -> None:
    made = interpreter.Sandbox.create("base", timeout=60)
    made.kill()
    done = cloche("exec", made.sandbox_id, "--", "true")
    assert done.returncode == 255
    assert made.sandbox_id.encode() in done.stderr


def test_a_file_goes_there_and_back(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "a.bin").write_bytes(content)
    assert cloche("cp", "a.bin", f"{box.sandbox_id}:/tmp/there.bin").returncode == 0
    assert cloche("cp", f"{box.sandbox_id}:/tmp/there.bin", "back.bin").returncode == 0
    assert (tmp_path / "back.bin").read_bytes() == content
    assert cloche("cp", f"{box.sandbox_id}:/tmp/there.bin", ".").returncode == 0
    assert (tmp_path / "there.bin").read_bytes() == content


def test_a_directory_goes_there_and_back(cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path) -> None:
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/run").write_text("x")
    (tmp_path / "tree/run").chmod(0o755)
    (tmp_path / "tree/sub/ü b").write_text("y")
    refused = cloche("cp", "tree", f"{box.sandbox_id}:/tmp/copied")
    assert refused.returncode == 1
    assert b"-r" in refused.stderr
    assert cloche("cp", "-r", "tree", f"{box.sandbox_id}:/tmp/copied").returncode == 0
    assert box.commands.run("ls -a /tmp | grep -c cloche-cp || true").stdout == "0\n"
    assert cloche("cp", "-r", f"{box.sandbox_id}:/tmp/copied", "back").returncode == 0
    assert (tmp_path / "back/sub/ü b").read_text() == "y"
    assert (tmp_path / "back/run").stat().st_mode & 0o111


def test_links_of_a_sandbox_are_not_followed_or_made(
    cloche: Cloche, box: interpreter.Sandbox, tmp_path: Path
) -> None:
    box.commands.run("mkdir -p /tmp/evil/in; cd /tmp/evil; ln -s /etc/hostname link; mkfifo pipe; echo x >in/file")
    (tmp_path / "outside").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/in").symlink_to(tmp_path / "outside")
    done = cloche("cp", "-r", f"{box.sandbox_id}:/tmp/evil/.", "out")
    assert done.returncode == 1, done.stderr
    assert list((tmp_path / "outside").iterdir()) == []
    (tmp_path / "out/in").unlink()
    done = cloche("cp", "-r", f"{box.sandbox_id}:/tmp/evil/.", "out")
    assert done.returncode == 0, done.stderr
    assert b"2 entries" in done.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["in"]


def test_names_in_listings_cannot_control_a_terminal(cloche: Cloche, box: interpreter.Sandbox) -> None:
    box.commands.run("mkdir -p /tmp/names; cd /tmp/names; touch \"$(printf 'a\\033[2Jb')\"; ln -s x here")
    done = cloche("ls", f"{box.sandbox_id}:/tmp/names")
    assert done.returncode == 0
    assert b"a?[2Jb" in done.stdout
    assert b"here -> " in done.stdout
    assert b"\033" not in done.stdout
    told = json.loads(cloche("ls", "--json", f"{box.sandbox_id}:/tmp/names").stdout)
    assert {entry["name"] for entry in told} == {"a\033[2Jb", "here"}


def test_cat_gives_bytes_to_programs_and_clean_text_to_terminals(cloche: Cloche, box: interpreter.Sandbox) -> None:
    box.files.write("/tmp/text", b"a\033[2Jb\n")
    assert cloche("cat", f"{box.sandbox_id}:/tmp/text").stdout == b"a\033[2Jb\n"
    terminal = Terminal("cat", f"{box.sandbox_id}:/tmp/text")
    terminal.until(b"a?[2Jb")
    assert terminal.end() == 0
    missing = cloche("cat", f"{box.sandbox_id}:/tmp/missing")
    assert missing.returncode == 1
    assert missing.stderr.startswith(b"cloche: /tmp/missing: ")
