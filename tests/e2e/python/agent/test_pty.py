# SPDX-License-Identifier: Apache-2.0
"""pty: a real terminal with size, input, reconnect and kill."""

from __future__ import annotations

import pytest
from e2b import CommandExitException, NotFoundException, PtySize

from support.either import Either, until

SIZE = PtySize(rows=24, cols=80)


async def create(box: Either, seen: list[bytes], **options: object) -> Either:
    if type(box.inner).__name__.startswith("Async"):
        return await box.pty.create(SIZE, on_data=lambda data: seen.append(bytes(data)), **options)
    return await box.pty.create(SIZE, **options)


async def reconnect(box: Either, pid: int, seen: list[bytes]) -> Either:
    if type(box.inner).__name__.startswith("Async"):
        return await box.pty.connect(pid, on_data=lambda data: seen.append(bytes(data)))
    return await box.pty.connect(pid)


async def finish(box: Either, handle: Either, seen: list[bytes]) -> int:
    try:
        if type(box.inner).__name__.startswith("Async"):
            return (await handle.wait()).exit_code
        return (await handle.wait(on_pty=lambda data: seen.append(bytes(data)))).exit_code
    except CommandExitException as ended:
        return ended.exit_code


async def test_a_shell_takes_input_and_variables(box: Either) -> None:
    seen: list[bytes] = []
    handle = await create(box, seen, envs={"ABC": "123"}, cwd="/")
    await box.pty.send_stdin(handle.pid, b"echo got-$ABC-$TERM-$(pwd)\nexit\n")
    assert await finish(box, handle, seen) == 0
    assert b"got-123-xterm-256color-/" in b"".join(seen)


async def test_the_exit_code_is_the_shells(box: Either) -> None:
    seen: list[bytes] = []
    handle = await create(box, seen)
    await box.pty.send_stdin(handle.pid, b"exit 5\n")
    assert await finish(box, handle, seen) == 5


async def test_the_size_is_real_and_can_change(box: Either, unique: str) -> None:
    seen: list[bytes] = []
    handle = await create(box, seen)
    await box.pty.send_stdin(handle.pid, f"echo first-$(tput cols); touch /tmp/{unique}\n".encode())
    await until(lambda: box.files.exists(f"/tmp/{unique}"))
    await box.pty.resize(handle.pid, PtySize(rows=30, cols=100))
    await box.pty.send_stdin(
        handle.pid, b"echo second-$(tput cols)-$(stty size | tr ' ' x)\nexit\n"
    )
    assert await finish(box, handle, seen) == 0
    output = b"".join(seen)
    assert b"first-80" in output
    assert b"second-100-30x100" in output


async def test_a_terminal_survives_its_client(box: Either, unique: str) -> None:
    first: list[bytes] = []
    handle = await create(box, first)
    await box.pty.send_stdin(handle.pid, f"kept=yes; touch /tmp/{unique}\n".encode())
    await until(lambda: box.files.exists(f"/tmp/{unique}"))
    await handle.disconnect()
    second: list[bytes] = []
    again = await reconnect(box, handle.pid, second)
    assert again.pid == handle.pid
    await box.pty.send_stdin(handle.pid, b"echo kept-$kept\nexit\n")
    assert await finish(box, again, second) == 0
    assert b"kept-yes" in b"".join(second)


async def test_a_killed_terminal_ends_its_shell(box: Either) -> None:
    seen: list[bytes] = []
    handle = await create(box, seen)
    assert await box.pty.kill(handle.pid) is True
    assert await finish(box, handle, seen) == -1
    with pytest.raises(CommandExitException):
        await box.commands.run(f"kill -0 {handle.pid}")
    assert await box.pty.kill(999_999) is False


async def test_nobody_can_be_resized_or_typed_to(box: Either) -> None:
    with pytest.raises(NotFoundException):
        await box.pty.resize(999_999, SIZE)
    with pytest.raises(NotFoundException):
        await box.pty.send_stdin(999_999, b"x")


async def test_it_is_a_controlling_terminal_of_the_user(box: Either) -> None:
    seen: list[bytes] = []
    handle = await create(box, seen)
    await box.pty.send_stdin(handle.pid, b"test -t 0 && echo tty-$(whoami)-ok < /dev/tty; exit\n")
    assert await finish(box, handle, seen) == 0
    assert b"tty-user-ok" in b"".join(seen)
