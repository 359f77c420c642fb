# SPDX-License-Identifier: Apache-2.0
"""What the stock SDKs can't do: interrupts, private variables."""

from __future__ import annotations

import pytest

import cloche
from cloche import AsyncSandbox, Sandbox

ENDLESS = "print('begun', flush=True)\nwhile True:\n    pass"


def test_an_interrupted_cell_ends_and_keeps_its_variables(shared: Sandbox) -> None:
    shared.run_code("kept = 7")
    run = shared.run_code(ENDLESS, background=True)
    assert run.id
    first = next(iter(run))
    assert isinstance(first, cloche.OutputMessage) and first.line == "begun\n"
    assert run.interrupt()
    execution = run.wait()
    assert execution.error is not None and execution.error.name == "KeyboardInterrupt"
    assert execution.logs.stdout == ["begun\n"]
    assert not run.interrupt()
    assert shared.run_code("kept").text == "7"


def test_a_context_is_interrupted_by_its_name(shared: Sandbox) -> None:
    context = shared.create_code_context()
    run = shared.run_code(ENDLESS, context=context, background=True)
    next(iter(run))
    assert not shared.interrupt()  # nothing runs in the default context
    assert shared.interrupt(context=context)
    error = run.wait().error
    assert error is not None and error.name == "KeyboardInterrupt"
    assert not shared.interrupt(context=context.id)
    with pytest.raises(cloche.NotFoundException):
        shared.interrupt(context="none")


def test_a_handle_interrupts_only_its_own_cell(shared: Sandbox) -> None:
    first = shared.run_code("import time; time.sleep(0.5); 'first'", background=True)
    second = shared.run_code("'second'", background=True)
    assert second.interrupt()
    assert first.wait().text == "first"
    error = second.wait().error
    assert error is not None and error.name == "ExecutionCancelled"


async def test_an_interrupted_cell_of_the_asynchronous_half() -> None:
    async with await AsyncSandbox.create(timeout=60) as box:
        run = await box.run_code(ENDLESS, background=True)
        async for event in run:
            assert isinstance(event, cloche.OutputMessage)
            break
        assert await run.interrupt()
        error = (await run.wait()).error
        assert error is not None and error.name == "KeyboardInterrupt"
        assert not await box.interrupt(language="python")


def test_variables_of_commands_and_terminals_show_in_no_list(shared: Sandbox) -> None:
    command = shared.commands.run("sleep 60; echo $TOKEN", background=True, envs={"TOKEN": "s3cret"})
    terminal = shared.pty.create(cloche.PtySize(24, 80), envs={"TOKEN": "s3cret"})
    try:
        listed = {one.pid: one for one in shared.commands.list()}
        assert listed[command.pid].envs == {}
        assert listed[terminal.pid].envs == {}
        assert "s3cret" not in repr(listed)
    finally:
        command.kill()
        terminal.kill()
    assert shared.commands.run("echo $TOKEN", envs={"TOKEN": "s3cret"}).stdout == "s3cret\n"


def test_a_client_has_options_of_its_own(unique: str) -> None:
    client = cloche.E2B(headers={"X-Test": unique})
    with client.Sandbox.create(timeout=60) as box:
        assert isinstance(box, cloche.Sandbox)
        assert box.connection_config.headers["X-Test"] == unique
        assert box.run_code("1").text == "1"
        assert client.Sandbox.get_info(box.sandbox_id).sandbox_id == box.sandbox_id
    with pytest.raises(cloche.AuthenticationException):
        cloche.E2B(api_key="e2b_wrong").Sandbox.create()


def test_the_same_idempotency_key_gives_the_same_box(unique: str) -> None:
    with Sandbox.create(timeout=60, idempotency_key=unique) as box:
        assert Sandbox.create(timeout=60, idempotency_key=unique).sandbox_id == box.sandbox_id
        with pytest.raises(cloche.SandboxException) as caught:
            Sandbox.create(timeout=61, idempotency_key=unique)
        assert caught.value.status_code == 409
