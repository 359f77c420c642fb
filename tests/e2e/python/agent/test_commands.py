# SPDX-License-Identifier: Apache-2.0
"""commands.run: output, exit codes, users, environment, directories, deadlines."""

from __future__ import annotations

import time

import pytest
from e2b import (
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    TimeoutException,
)

from support.either import Either, until


@pytest.mark.parametrize("text", ["hello", "!@#$%^&*()_+", "one\ntwo\n\nthree", "grüße 漢字"])
async def test_output_is_passed_byte_for_byte(box: Either, text: str) -> None:
    done = await box.commands.run(f"echo '{text}'")
    assert (done.stdout, done.stderr, done.exit_code) == (f"{text}\n", "", 0)
    assert done.error is None


async def test_a_cut_utf8_sequence_shows_one_replacement(box: Either) -> None:
    done = await box.commands.run(r"printf 'a%.0s' $(seq 8191); printf '\xe2'")
    assert done.stdout == "a" * 8191 + "\ufffd"


async def test_large_output_is_complete(box: Either) -> None:
    done = await box.commands.run("seq 200000; seq 3 >&2")
    assert done.stdout.count("\n") == 200_000
    assert done.stdout.endswith("199999\n200000\n")
    assert done.stderr == "1\n2\n3\n"


async def test_callbacks_get_the_output_as_it_comes(box: Either) -> None:
    out: list[str] = []
    err: list[str] = []
    times: list[float] = []

    def on_stdout(text: str) -> None:
        out.append(text)
        times.append(time.monotonic())

    await box.commands.run(
        "echo a; sleep 0.5; echo b; echo c >&2", on_stdout=on_stdout, on_stderr=err.append
    )
    assert "".join(out) == "a\nb\n"
    assert "".join(err) == "c\n"
    assert times[-1] - times[0] > 0.3


@pytest.mark.parametrize(
    "command, code, error",
    [
        ("exit 3", 3, "exit status 3"),
        ("no-such-command-here", 127, "exit status 127"),
        ("kill -9 $$", -1, "signal: killed"),
        ("kill -15 $$", -1, "signal: terminated"),
        ("false", 1, "exit status 1"),
    ],
)
async def test_a_failed_command_tells_its_exit_code_and_signal(
    box: Either, command: str, code: int, error: str
) -> None:
    with pytest.raises(CommandExitException) as caught:
        await box.commands.run(command)
    assert (caught.value.exit_code, caught.value.error) == (code, error)


async def test_the_default_user_starts_at_home(box: Either) -> None:
    done = await box.commands.run('whoami; pwd; echo "$HOME $USER $LOGNAME"; id -gn')
    assert done.stdout == "user\n/home/user\n/home/user user user\nuser\n"


async def test_another_user_can_be_named(box: Either) -> None:
    done = await box.commands.run("whoami; pwd; echo $HOME", user="root")
    assert done.stdout == "root\n/root\n/root\n"
    with pytest.raises(AuthenticationException, match="invalid username: 'nobody-here'"):
        await box.commands.run("true", user="nobody-here")


async def test_sudo_needs_no_password(box: Either) -> None:
    assert (await box.commands.run("sudo whoami")).stdout == "root\n"


async def test_variables_belong_to_one_command(box: Either) -> None:
    done = await box.commands.run(
        "echo $FOO; python3 -c 'import os; print(os.environ[\"FOO\"])'", envs={"FOO": "bar baz"}
    )
    assert done.stdout == "bar baz\nbar baz\n"
    assert (await box.commands.run("echo ${FOO-unset}")).stdout == "unset\n"


async def test_a_command_knows_it_is_in_a_box(box: Either) -> None:
    done = await box.commands.run("echo $E2B_SANDBOX $E2B_SANDBOX_ID")
    assert done.stdout == f"true {box.sandbox_id}\n"


@pytest.mark.parametrize("cwd, there", [("/tmp", "/tmp"), ("sub dir", "/home/user/sub dir")])
async def test_a_command_starts_in_the_folder_it_was_given(box: Either, cwd: str, there: str) -> None:
    await box.files.make_dir("sub dir")
    assert (await box.commands.run("pwd", cwd=cwd)).stdout == f"{there}\n"


async def test_a_missing_cwd_is_named(box: Either, unique: str) -> None:
    with pytest.raises(InvalidArgumentException, match=f"cwd '/home/user/{unique}' does not exist"):
        await box.commands.run("pwd", cwd=unique)


async def test_a_forbidden_cwd_is_refused(box: Either, unique: str) -> None:
    await box.commands.run(f"mkdir -m 700 /{unique}", user="root")
    with pytest.raises(InvalidArgumentException):
        await box.commands.run("pwd", cwd=f"/{unique}")
    assert (await box.commands.run("pwd", cwd=f"/{unique}", user="root")).stdout == f"/{unique}\n"


async def test_a_deadline_ends_the_call_and_the_command(box: Either, unique: str) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutException):
        await box.commands.run(f"exec -a {unique} sleep 30", timeout=1)
    assert time.monotonic() - started < 25

    async def gone() -> bool:
        return unique not in (await box.commands.run("ps ax -o args")).stdout

    await until(gone, 5)


async def test_a_deadline_ends_a_background_handle_too(box: Either) -> None:
    handle = await box.commands.run("sleep 30", background=True, timeout=1)
    with pytest.raises(TimeoutException):
        await handle.wait()


async def test_no_deadline_means_none(box: Either) -> None:
    assert (await box.commands.run("sleep 1.5; echo done", timeout=0)).stdout == "done\n"


async def test_a_background_grandchild_keeps_the_output_open(box: Either) -> None:
    started = time.monotonic()
    done = await box.commands.run("(sleep 1; echo late) & echo early")
    assert done.stdout == "early\nlate\n"
    assert time.monotonic() - started >= 0.9


async def test_stdin_is_empty_unless_asked(box: Either) -> None:
    with pytest.raises(CommandExitException) as caught:
        await box.commands.run("read -r line")
    assert caught.value.exit_code == 1


async def test_children_start_with_a_clean_slate(box: Either) -> None:
    done = await box.commands.run(
        # No pipe: the shell itself would hold its ends for a moment.
        "grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; ls /proc/$$/fd; true"
    )
    lines = done.stdout.split("\n")
    assert [line.split()[1] for line in lines[:2]] == ["0" * 16, "0" * 16]
    assert lines[2] == "0022"
    assert {"0", "1", "2"} <= set(lines[3:-1]) <= {"0", "1", "2", "3", "255"}


async def test_setsid_passes_the_exit_code_on(box: Either) -> None:
    """It forks and returns at once when its caller leads a process group."""
    with pytest.raises(CommandExitException) as failed:
        await box.commands.run("setsid sh -c 'sleep 0.2; exit 3'")
    assert failed.value.exit_code == 3


async def test_a_signal_to_its_own_group_stays_inside_a_command(box: Either) -> None:
    other = await box.commands.run("sleep 60; echo over", background=True)
    with pytest.raises(CommandExitException) as failed:
        await box.commands.run("sleep 61 & kill -TERM 0; wait")
    assert failed.value.exit_code != 0
    assert other.pid in [each.pid for each in await box.commands.list()]
    done = await box.commands.run("pgrep -f 'sleep 6[1]' || echo gone")
    assert done.stdout == "gone\n"
    await box.commands.kill(other.pid)
