# SPDX-License-Identifier: Apache-2.0
"""Contexts: made, listed, restarted, removed; independent; each in its own directory."""

from __future__ import annotations

import e2b_code_interpreter as interpreter
import pytest

from support.either import Either


async def test_a_new_context_is_listed_last(cell: Either) -> None:
    context = await cell.create_code_context()
    last = (await cell.list_code_contexts())[-1]
    assert (last.id, last.language, last.cwd) == (context.id, "python", "/home/user")


async def test_language_and_cwd_are_honoured(cell: Either) -> None:
    context = await cell.create_code_context(language="python", cwd="/root")
    assert (context.language, context.cwd) == ("python", "/root")
    assert (await cell.run_code("import os; os.getcwd()", context=context)).text == "/root"


async def test_a_cwd_with_quotes_works(cell: Either) -> None:
    path = "/home/user/a 'quoted' \"dir\""
    await cell.files.make_dir(path)
    for language in ("python", "bash"):
        context = await cell.create_code_context(language=language, cwd=path)
        assert context.cwd == path
    done = await cell.run_code("pwd", context=context)
    assert "".join(done.logs.stdout).strip() == path


async def test_a_missing_cwd_is_refused_and_leaves_no_context(cell: Either) -> None:
    before = [context.id for context in await cell.list_code_contexts()]
    with pytest.raises(interpreter.SandboxException, match="Failed to set working directory"):
        await cell.create_code_context(cwd="/no/such/place")
    assert [context.id for context in await cell.list_code_contexts()] == before


async def test_the_defaults_are_there_from_the_start(cell: Either) -> None:
    languages = [context.language for context in await cell.list_code_contexts()]
    assert languages[:2] == ["python", "javascript"]


async def test_contexts_do_not_share_names(cell: Either) -> None:
    await cell.run_code("x = 1")
    context = await cell.create_code_context()
    done = await cell.run_code("x", context=context)
    assert (done.error.name, done.error.value) == ("NameError", "name 'x' is not defined")
    assert (await cell.run_code("x")).text == "1"


async def test_a_removed_context_is_gone(cell: Either) -> None:
    context = await cell.create_code_context()
    await cell.remove_code_context(context)
    assert context.id not in [c.id for c in await cell.list_code_contexts()]
    with pytest.raises(interpreter.NotFoundException):
        await cell.run_code("1", context=context)
    with pytest.raises(interpreter.NotFoundException):
        await cell.remove_code_context(context.id)


async def test_a_restart_forgets_names_and_keeps_identity(cell: Either) -> None:
    context = await cell.create_code_context(cwd="/tmp")
    order = [c.id for c in await cell.list_code_contexts()]
    await cell.run_code("x = 1", context=context)
    await cell.restart_code_context(context)
    done = await cell.run_code("x", context=context)
    assert (done.error.name, done.error.value) == ("NameError", "name 'x' is not defined")
    assert done.execution_count == 1
    assert (await cell.run_code("import os; os.getcwd()", context=context)).text == "/tmp"
    assert [c.id for c in await cell.list_code_contexts()] == order
    with pytest.raises(interpreter.NotFoundException):
        await cell.restart_code_context("00000000-0000-4000-8000-000000000000")


async def test_restarting_the_default_affects_every_way_to_it() -> None:
    with interpreter.Sandbox.create(timeout=60) as fresh:
        fresh.run_code("x = 1")
        default = fresh.list_code_contexts()[0]
        fresh.restart_code_context(default)
        assert fresh.run_code("x").error.name == "NameError"
        assert fresh.run_code("x", language="python").error.name == "NameError"
        assert fresh.run_code("x", context=default).error.name == "NameError"


async def test_a_deleted_default_is_made_anew() -> None:
    with interpreter.Sandbox.create(timeout=60) as fresh:
        fresh.run_code("x = 1")
        fresh.remove_code_context(fresh.list_code_contexts()[0])
        assert fresh.run_code("'x' in dir()").text == "False"
        assert fresh.run_code("1 + 1", language="python").text == "2"


@pytest.mark.parametrize("spelling", ["python", "Python", " python ", "python3"])
async def test_spellings_of_a_language(cell: Either, spelling: str) -> None:
    await cell.run_code("spelled = 7")
    assert (await cell.run_code("spelled", language=spelling)).text == "7"


async def test_typescript_has_a_default_of_its_own(cell: Either) -> None:
    await cell.run_code("var apart = 1", language="js")
    done = await cell.run_code("typeof apart", language="ts")
    assert done.text == "undefined"
    assert (await cell.run_code("apart", language="javascript")).text == "1"
