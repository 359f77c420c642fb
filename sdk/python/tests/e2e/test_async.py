# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a real server with asyncio."""

from __future__ import annotations

import asyncio
from typing import AsyncIterator, List

import pytest

import cloche
from cloche import AsyncSandbox


@pytest.fixture
async def box() -> AsyncIterator[AsyncSandbox]:
    async with await AsyncSandbox.create(timeout=120) as made:
        yield made


async def test_leaving_the_async_with_block_ends_the_box() -> None:
    async with await AsyncSandbox.create(timeout=60) as box:
        assert await box.is_running()
    assert not await box.is_running()
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        await box.run_code("1")
    assert caught.value.cause is not None and caught.value.cause.kind == "killed"


async def test_code_with_callbacks_of_both_kinds(box: AsyncSandbox) -> None:
    seen: List[str] = []

    async def later(message: cloche.OutputMessage) -> None:
        await asyncio.sleep(0)
        seen.append(message.line)

    execution = await box.run_code("print('a')\n1 + 1", on_stdout=later, on_result=lambda one: seen.append(str(one)))
    assert execution.text == "2"
    assert seen == ["a\n", "Result(2)"]
    assert [one.id for one in await box.list_code_contexts()]


async def test_a_cell_in_the_background(box: AsyncSandbox) -> None:
    run = await box.run_code("print('one')\nimport time\ntime.sleep(0.2)\nprint('two')\n3", background=True)
    lines = [event.line async for event in run if isinstance(event, cloche.OutputMessage)]
    assert lines == ["one\n", "two\n"]
    assert (await run.wait()).text == "3"
    assert [event.line async for event in run if isinstance(event, cloche.OutputMessage)] == lines


async def test_files_commands_and_input(box: AsyncSandbox) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(3):
            yield str(at).encode()

    await box.files.write("/home/user/x", pieces())
    assert await box.files.read("/home/user/x") == "012"
    written = await box.files.write_files([{"path": f"/home/user/{at}", "data": "x"} for at in range(4)])
    assert [one.name for one in written] == ["0", "1", "2", "3"]
    async with await box.files.read("/home/user/x", format="stream") as stream:
        assert b"".join([chunk async for chunk in stream]) == b"012"
    with pytest.raises(cloche.InvalidArgumentException):
        await box.files.write("/home/user/x", iter([b"x"]))  # type: ignore[arg-type]
    handle = await box.commands.run("cat", background=True, stdin=True)
    async with box.commands.stream_input(handle.pid) as stdin:
        await stdin.send("a")
        await stdin.send(b"b")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "ab"
    results = await asyncio.gather(*(box.commands.run(f"echo {at}") for at in range(20)))
    assert [result.stdout for result in results] == [f"{at}\n" for at in range(20)]


async def test_input_for_no_process_fails(box: AsyncSandbox) -> None:
    stdin = box.commands.stream_input(999999)
    with pytest.raises(cloche.NotFoundException):
        await stdin.close()


async def test_watching_and_terminals(box: AsyncSandbox) -> None:
    events: asyncio.Queue[cloche.FilesystemEvent] = asyncio.Queue()
    ended: List[object] = []
    watch = await box.files.watch_dir("/home/user", events.put_nowait, ended.append, include_entry=True)
    await box.files.write("/home/user/x", "1")
    event = await asyncio.wait_for(events.get(), 30)
    assert (event.name, event.type) == ("x", cloche.FilesystemEventType.CREATE)
    await watch.stop()
    assert ended == [None]
    with pytest.raises(cloche.FileNotFoundException):
        await box.files.watch_dir("/no/such", events.put_nowait)
    seen = bytearray()
    terminal = await box.pty.create(cloche.PtySize(24, 80), seen.extend)
    await box.pty.send_stdin(terminal.pid, b"echo $((40 + 2)); exit\n")
    await terminal.wait()
    assert b"42" in seen


async def test_a_disconnected_command_runs_on(box: AsyncSandbox) -> None:
    handle = await box.commands.run("sleep 60", background=True)
    await handle.disconnect()
    assert handle.pid in [one.pid for one in await box.commands.list()]
    assert await handle.kill()


async def test_cancelling_a_task_is_a_cancellation(box: AsyncSandbox) -> None:
    task = asyncio.create_task(box.commands.run("sleep 60"))
    await box.commands.list()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await box.run_code("1")).text == "1"
