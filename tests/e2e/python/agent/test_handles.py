# SPDX-License-Identifier: Apache-2.0
"""commands: background handles, reconnecting, killing, listing, stdin."""

from __future__ import annotations

import pytest
from e2b import CommandExitException, NotFoundException, SandboxException

from support.either import Either, until

NOBODY = 999_999


async def test_a_background_command_is_waited_for(box: Either) -> None:
    handle = await box.commands.run("sleep 0.3; echo done", background=True)
    assert handle.pid > 0
    done = await handle.wait()
    assert (done.stdout, done.exit_code) == ("done\n", 0)


async def test_waiting_for_a_failure_raises(box: Either) -> None:
    handle = await box.commands.run("echo partial; exit 4", background=True)
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert (caught.value.stdout, caught.value.exit_code) == ("partial\n", 4)


async def test_list_shows_what_runs_and_nothing_else(box: Either, unique: str) -> None:
    first = await box.commands.run(
        f"sleep 20; : {unique}", background=True, cwd="/tmp", envs={"A": "1"}
    )
    second = await box.commands.run("sleep 20", background=True)
    listed = {process.pid: process for process in await box.commands.list()}
    assert {first.pid, second.pid} <= set(listed)
    config = listed[first.pid]
    assert (config.cmd, config.args) == ("/bin/bash", ["-l", "-c", f"sleep 20; : {unique}"])
    assert (config.cwd, config.envs) == ("/tmp", {"A": "1"})
    assert await first.kill()
    assert await second.kill()

    async def gone() -> bool:
        return not {first.pid, second.pid} & {p.pid for p in await box.commands.list()}

    await until(gone, 5)


async def test_a_killed_command_is_really_gone(box: Either) -> None:
    handle = await box.commands.run("sleep 30 && echo done", background=True)
    assert await box.commands.kill(handle.pid) is True
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    with pytest.raises(CommandExitException):
        await box.commands.run(f"kill -0 {handle.pid}")


async def test_killing_nobody_says_so(box: Either) -> None:
    assert await box.commands.kill(NOBODY) is False


async def test_connecting_gets_what_comes_from_then_on(box: Either, unique: str) -> None:
    said, go_on = f"/tmp/{unique}-said", f"/tmp/{unique}-go-on"
    started = await box.commands.run(
        f"echo early; touch {said}; until [ -e {go_on} ]; do sleep 0.05; done; echo late", background=True
    )
    await until(lambda: box.files.exists(said))
    other = await box.commands.connect(started.pid)
    assert other.pid == started.pid
    await box.files.write(go_on, "")
    assert (await other.wait()).stdout == "late\n"
    assert (await started.wait()).stdout == "early\nlate\n"


async def test_connecting_to_nobody_is_not_found(box: Either) -> None:
    with pytest.raises(NotFoundException, match=f"process with pid {NOBODY} not found"):
        await box.commands.connect(NOBODY)


async def test_a_finished_command_still_tells_its_exit(box: Either) -> None:
    handle = await box.commands.run("exit 6", background=True)
    with pytest.raises(CommandExitException):
        await handle.wait()
    late = await box.commands.connect(handle.pid)
    with pytest.raises(CommandExitException) as caught:
        await late.wait()
    assert caught.value.exit_code == 6


async def test_disconnecting_leaves_the_command_alone(box: Either, unique: str) -> None:
    handle = await box.commands.run(f"sleep 1; touch {unique}", background=True)
    await handle.disconnect()

    async def made() -> bool:
        return await box.files.exists(unique)

    await until(made, 5)


async def test_output_nobody_reads_does_not_block(box: Either, unique: str) -> None:
    handle = await box.commands.run(f"sleep 0.3; seq 300000; touch {unique}", background=True)
    await handle.disconnect()

    async def made() -> bool:
        return await box.files.exists(unique)

    await until(made, 10)


@pytest.mark.parametrize("data", ["hello", "a\nb\n", "!@#$%", "grüße", ""])
async def test_stdin_reaches_the_command(box: Either, data: str) -> None:
    handle = await box.commands.run("cat", background=True, stdin=True)
    await box.commands.send_stdin(handle.pid, data)
    await box.commands.close_stdin(handle.pid)
    done = await handle.wait()
    assert (done.stdout, done.exit_code) == (data, 0)


async def test_the_handle_sends_and_closes_stdin(box: Either) -> None:
    handle = await box.commands.run("cat", background=True, stdin=True)
    await handle.send_stdin(b"\x00\xffbytes")
    await handle.send_stdin(" and text")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "\x00\ufffdbytes and text"


async def test_a_large_stdin_arrives_whole(box: Either) -> None:
    handle = await box.commands.run("wc -c", background=True, stdin=True)
    for _ in range(8):
        await handle.send_stdin(b"x" * 262_144)
    await handle.close_stdin()
    assert (await handle.wait()).stdout.strip() == str(8 * 262_144)


async def test_stdin_that_is_not_open_is_an_error(box: Either) -> None:
    handle = await box.commands.run("sleep 5", background=True)
    with pytest.raises(SandboxException):
        await box.commands.send_stdin(handle.pid, "x")
    await handle.kill()
    with pytest.raises(NotFoundException):
        await box.commands.send_stdin(NOBODY, "x")


async def test_many_commands_at_once(box: Either) -> None:
    handles = [await box.commands.run(f"sleep 0.5; echo {n}", background=True) for n in range(40)]
    assert len({handle.pid for handle in handles}) == 40
    for n, handle in enumerate(handles):
        assert (await handle.wait()).stdout == f"{n}\n"


async def test_no_zombie_and_no_descriptor_is_left(box: Either) -> None:
    async def pressure() -> tuple[int, int]:
        done = await box.commands.run(
            "ls /proc/1/fd | wc -l; ps ax -o stat | grep -c Z", user="root", timeout=20
        )
        fds, zombies = done.stdout.split()
        return int(fds), int(zombies)

    async def measure() -> tuple[int, int]:
        try:
            return await pressure()
        except CommandExitException as none_found:
            fds, zombies = none_found.stdout.split()
            return int(fds), int(zombies)

    before = await measure()
    for _ in range(60):
        await box.commands.run("true")
    after = await measure()
    assert after[0] <= before[0] + 3
    assert after[1] == 0
