# SPDX-License-Identifier: Apache-2.0
"""run_code: results, streams, callbacks, counts, limits of a handle."""

from __future__ import annotations

import json

import e2b_code_interpreter as interpreter
import pytest
from e2b_code_interpreter import InvalidArgumentException, NotFoundException

from support.either import Either


async def test_the_last_expression_is_the_result(cell: Either) -> None:
    assert (await cell.run_code("x =1; x")).text == "1"
    assert (await cell.run_code("1;")).results == []
    assert (await cell.run_code("None")).results == []
    assert (await cell.run_code("if True:\n    5")).results == []
    assert (await cell.run_code("1\n2")).text == "2"


async def test_state_is_kept_between_cells(cell: Either) -> None:
    await cell.run_code("x = 1")
    assert (await cell.run_code("x += 1; x")).text == "2"


async def test_quotes_of_a_string_are_stripped_and_nothing_else(cell: Either) -> None:
    assert (await cell.run_code("'hello'")).text == "hello"
    assert (await cell.run_code("'a\\nb'")).text == "a\\nb"
    assert (await cell.run_code("''")).text == ""
    assert (await cell.run_code("print('x')")).text is None


async def test_stdout_and_stderr_are_one_event_each(cell: Either) -> None:
    code = "import sys\nprint('a')\nprint('e', file=sys.stderr)\nprint('b')"
    for _ in range(5):  # a kernel that loses its processor between two prints is not waited for
        logs = (await cell.run_code(code)).logs
        assert "".join(logs.stdout) == "a\nb\n"
        assert logs.stderr == ["e\n"]
        if len(logs.stdout) == 1:
            return
    pytest.fail("prints next to each other were never joined")


async def test_callbacks_come_exactly_once(cell: Either) -> None:
    seen: dict[str, list] = {"out": [], "err": [], "result": [], "error": []}
    callbacks = {
        "on_stdout": seen["out"].append,
        "on_stderr": seen["err"].append,
        "on_result": seen["result"].append,
        "on_error": seen["error"].append,
    }
    code = "import sys; print('Hello from e2b'); print('bad', file=sys.stderr)\n1"
    await cell.run_code(code, **callbacks)
    assert [message.line for message in seen["out"]] == ["Hello from e2b\n"]
    assert [message.line for message in seen["err"]] == ["bad\n"]
    assert [message.error for message in seen["out"] + seen["err"]] == [False, True]
    assert [result.text for result in seen["result"]] == ["1"]
    assert seen["error"] == []
    await cell.run_code("undefined_name", **callbacks)
    assert [error.name for error in seen["error"]] == ["NameError"]


async def test_an_error_keeps_what_was_printed_before(cell: Either) -> None:
    done = await cell.run_code("print('before')\nraise ValueError('no')")
    assert done.logs.stdout == ["before\n"]
    assert (done.error.name, done.error.value) == ("ValueError", "no")
    assert done.results == []


async def test_the_traceback_has_lines(cell: Either) -> None:
    traceback = (await cell.run_code("a = 1\nb = a / 0")).error.traceback
    assert "\x1b" not in traceback
    assert "ZeroDivisionError" in traceback.split("\n")[1]
    assert "----> 2 b = a / 0" in traceback
    assert traceback.rstrip().endswith("ZeroDivisionError: division by zero")


async def test_a_syntax_error_is_an_error_and_counts() -> None:
    with interpreter.Sandbox.create(timeout=60) as fresh:
        done = fresh.run_code("echo 'no python'")
        assert done.error.name == "SyntaxError"
        assert done.execution_count == 1
        done = fresh.run_code("!pwd")
        assert done.execution_count == 2
        assert "".join(done.logs.stdout).strip() == "/home/user"


async def test_indented_cells_run(cell: Either) -> None:
    done = await cell.run_code("""
        total = 0
        for n in range(4):
            total += n
        total
    """)
    assert done.text == "6"


async def test_unicode_survives_every_border(cell: Either) -> None:
    text = "é漢字😀 \u2028\u2029\u0085 end"
    done = await cell.run_code(f"print({text!r} * 2000); {text!r}")
    assert "".join(done.logs.stdout) == text * 2000 + "\n"
    assert done.text == repr(text)[1:-1]


async def test_a_large_output_is_complete(cell: Either) -> None:
    done = await cell.run_code("for n in range(20000): print(n, 'x' * 100)")
    lines = "".join(done.logs.stdout).splitlines()
    assert len(lines) == 20_000
    assert lines[-1] == "19999 " + "x" * 100


async def test_a_large_result_is_complete(cell: Either) -> None:
    done = await cell.run_code("'y' * 5_000_000")
    assert done.text == "y" * 5_000_000


async def test_both_selectors_are_refused_by_the_client(cell: Either) -> None:
    context = await cell.create_code_context()
    with pytest.raises(InvalidArgumentException):
        await cell.run_code("1", language="python", context=context)


async def test_an_unknown_context_is_not_found(cell: Either) -> None:
    ghost = interpreter.Context("00000000-0000-4000-8000-000000000000", "python", "/home/user")
    with pytest.raises(NotFoundException, match="not found"):
        await cell.run_code("1", context=ghost)


async def test_an_unknown_language_is_an_error(cell: Either) -> None:
    with pytest.raises(interpreter.SandboxException, match="Failed to create context"):
        await cell.run_code("1", language="cobol")


async def test_an_execution_serialises_to_json(cell: Either) -> None:
    parsed = json.loads((await cell.run_code("print('x'); 41 + 1")).to_json())
    assert parsed["results"][0]["text"] == "42"
    assert json.loads(parsed["logs"])["stdout"] == ["x\n"]
    assert parsed["error"] is None


async def test_reconnecting_finds_the_same_kernel(cell: Either) -> None:
    await cell.run_code("kept = 'still here'")
    again = interpreter.Sandbox.connect(cell.sandbox_id)
    assert again.run_code("kept").text == "still here"


async def test_a_secured_box_with_closed_traffic_still_runs_code() -> None:
    made = interpreter.Sandbox.create(
        timeout=60, secure=True, network={"allow_public_traffic": False}
    )
    with made:
        assert made.traffic_access_token
        assert made.run_code("x =1; x").text == "1"
        context = made.create_code_context()
        assert made.list_code_contexts()[-1].id == context.id
        made.restart_code_context(context)
        made.remove_code_context(context)
        assert context.id not in [c.id for c in made.list_code_contexts()]
