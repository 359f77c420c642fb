# SPDX-License-Identifier: Apache-2.0
"""`cloche shell`: a terminal in a sandbox or one command there, and what failed builds leave to look into."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import e2b
import pytest

from support.recipes import fresh
from support.terminal import Terminal
from support.waiting import eventually

CLOCHE = os.environ["CLOCHE_BIN"]


@pytest.fixture(scope="module")
def box() -> Iterator[e2b.Sandbox]:
    with e2b.Sandbox.create("base", timeout=300) as made:
        yield made


def cloche(*words: str, given: bytes = b"", timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([CLOCHE, *words], input=given, capture_output=True, timeout=timeout, check=False)


def test_a_terminal_takes_keys_and_gives_the_exit_status(box: e2b.Sandbox) -> None:
    shell = Terminal("shell", box.sandbox_id)
    shell.type("tty; id -un; echo do'ne'\n")
    said = shell.until(b"done\r\n")
    assert b"/dev/pts/" in said
    assert said.endswith(b"user\r\n")
    shell.type("exit 43\n")
    assert shell.end() == 43


def test_a_terminal_knows_its_size_and_hears_of_another(box: e2b.Sandbox) -> None:
    shell = Terminal("shell", box.sandbox_id, rows=41, columns=99)
    shell.type("echo re'ady'\n")
    shell.until(b"ready\r\n")
    shell.type("stty size; echo o'ne'\n")
    assert b"41 99" in shell.until(b"one\r\n")
    shell.size(20, 77)
    deadline = time.monotonic() + 60
    while True:
        shell.type("stty size; echo a'gain'\n")
        if b"20 77" in shell.until(b"again\r\n"):
            break
        assert time.monotonic() < deadline
    shell.until(b"$ ")  # before it shows, the end would be the terminal's to see and not the shell's
    shell.type("\x04")
    shell.end()


def test_keys_that_would_end_a_command_here_go_there(box: e2b.Sandbox) -> None:
    shell = Terminal("shell", box.sandbox_id)
    shell.type("sleep 100.5; echo stat'us'=$?\n")
    eventually(lambda: box.commands.run("pgrep -fx 'sleep 100.5' || true").stdout)
    shell.type("\x03")
    shell.until(b"\r\n")
    shell.type("echo still' here'\n")
    shell.until(b"still here\r\n")
    shell.type("exit 0\n")
    assert shell.end() == 0


def test_a_terminal_that_is_closed_takes_its_process_along(box: e2b.Sandbox) -> None:
    shell = Terminal("shell", box.sandbox_id)
    shell.type("exec sleep 12345\n")
    shell.until(b"12345")
    deadline = time.monotonic() + 60
    while (
        "12345"
        not in "".join(" ".join([p.cmd, *p.args]) for p in box.commands.list()) + box.commands.run("ps ax").stdout
    ):
        assert time.monotonic() < deadline
    os.kill(shell.pid, signal.SIGHUP)
    assert shell.end() == 128 + signal.SIGHUP
    deadline = time.monotonic() + 60
    while "sleep 12345" in box.commands.run("ps ax -o args").stdout:
        assert time.monotonic() < deadline


def test_one_command_with_its_output_errors_and_status(box: e2b.Sandbox) -> None:
    done = cloche("shell", box.sandbox_id, "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout, done.stderr) == (5, b"out\n", b"err\n")
    words = cloche("shell", box.sandbox_id, "--", "printf", "%s|", "a b", "$HOME", "--user")
    assert words.stdout == b"a b|$HOME|--user|"


def test_input_that_is_no_terminal_passes_to_the_letter(box: e2b.Sandbox) -> None:
    sent = os.urandom(700_000)
    done = cloche("shell", box.sandbox_id, "--", "cat", given=sent)
    assert (done.returncode, done.stdout == sent) == (0, True)
    script = cloche("shell", box.sandbox_id, given=b"cd /tmp\npwd\nexit 9\n")
    assert (script.returncode, script.stdout) == (9, b"/tmp\n")


def test_user_and_directory_may_be_chosen(box: e2b.Sandbox) -> None:
    done = cloche("shell", "--user", "root", "--workdir", "/usr", box.sandbox_id, "--", "sh", "-c", "id -un; pwd")
    assert done.stdout == b"root\n/usr\n"
    assert b"nobody-here" in cloche("shell", "--user", "nobody-here", box.sandbox_id, "--", "id").stderr


def test_what_is_not_there_is_named(box: e2b.Sandbox) -> None:
    done = cloche("shell", "inosuchsandbox")
    assert done.returncode == 255
    assert b"inosuchsandbox" in done.stderr
    assert cloche("shell", box.sandbox_id, "--", "/no/such/program").returncode == 127
    killed = cloche("shell", box.sandbox_id, "--", "sh", "-c", "kill -9 $$")
    assert (killed.returncode, killed.stderr) == (255, b"cloche: signal: killed\n")


def test_a_paused_sandbox_says_what_to_do() -> None:
    with e2b.Sandbox.create("base", timeout=300) as asleep:
        asleep.pause()
        done = cloche("shell", asleep.sandbox_id, "--", "true")
        assert done.returncode == 255
        assert b"cloche resume" in done.stderr


def test_a_new_sandbox_ends_with_its_shell() -> None:
    done = cloche("shell", "--new", "base", "--", "sh", "-c", "echo $E2B_SANDBOX_ID")
    made = done.stdout.decode().strip()
    assert re.fullmatch("i[a-z0-9]{20}", made)
    deadline = time.monotonic() + 60
    while made in cloche("ps").stdout.decode():
        assert time.monotonic() < deadline


def kept_box(said: bytes) -> str:
    found = re.search(rb"is sandbox (i[a-z0-9]{20}), as it stands: cloche shell", said)
    assert found, said
    return found[1].decode()


def test_a_failed_build_keeps_a_sandbox_with_a_shell() -> None:
    name = fresh("kept")
    steps = ["--run", "echo whole > ~/whole", "--run", "echo half > ~/half; exit 3", "--keep"]
    done = cloche("template", "build", name, *steps)
    assert done.returncode == 1
    assert b"step 2" in done.stderr
    made = kept_box(done.stdout)
    try:
        shell = Terminal("shell", made)
        shell.type("cat ~/whole ~/half; exit 4\n")
        shell.until(b"whole\r\nhalf\r\n")
        assert shell.end() == 4
    finally:
        cloche("kill", made)
    again = cloche("template", "build", name, "--image", "127.0.0.1:9/no/such:1", "--keep")
    assert again.returncode == 1
    assert b"before it had written anything" in again.stdout


def test_a_start_command_that_fails_keeps_the_steps() -> None:
    name = fresh("kept-start")
    steps = ["--run", "echo built > ~/built", "--start", "cat ~/built; exit 3", "--ready", "false", "--keep"]
    done = cloche("template", "build", name, *steps)
    assert done.returncode == 1
    made = kept_box(done.stdout)
    try:
        assert cloche("shell", made, "--", "sh", "-c", "cat ~/built").stdout == b"built\n"
    finally:
        cloche("kill", made)


def test_a_server_that_crash_loops_finishes_with_debug_and_its_logs_are_read() -> None:
    name = fresh("loops")
    start = 'i=0; while :; do echo "crash $((i=i+1))"; sleep 0.2; [ $i -lt 3 ] || exit 9; done'
    done = cloche("template", "build", name, "--start", start, "--ready", "false", "--debug")
    assert done.returncode == 0, done
    with e2b.Sandbox.create(name, timeout=60) as made:
        eventually(lambda: b"crash 3" in cloche("logs", made.sandbox_id).stdout)
        assert cloche("shell", made.sandbox_id, "--", "echo", "alive").stdout == b"alive\n"
