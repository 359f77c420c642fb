# SPDX-License-Identifier: Apache-2.0
"""Running cells: values, counts, errors, magics, variables, leaving."""

import os
import signal
import time

import pytest

from conftest import Client, Gone, exit_of, fork


def test_the_kernel_introduces_itself(lone: Client) -> None:
    assert lone.ready["ev"] == "ready"
    assert lone.ready["interrupt"] == "signal"
    assert lone.ready["coalesce"] is True
    assert lone.ready["version"].startswith("3.")
    assert lone.ready["pid"] == lone.process.pid


def test_a_lone_kernel_runs_cells_like_a_forked_one(lone: Client) -> None:
    outcome = lone.run("print('hi')\n1 + 1")
    assert (outcome.count, outcome.stdout, outcome.value, outcome.status) == (1, "hi\n", "2", "ok")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("1 + 1;", None),
        ("1 + 1;  # quiet", None),
        ("'a;b'", "'a;b'"),
        ("None", None),
        ("if True:\n    5", None),
        ("1\n2\n3", "3"),
        ("x = 4", None),
        ("    y = 1\n    y + 1", "2"),
        ("\n\n    if True:\n        z = 3\n    z", "3"),
        ("float('nan')", "nan"),
        ("'it\\'s'", '"it\'s"'),
        ("{1: 'a', 'b': [2.0]}", "{1: 'a', 'b': [2.0]}"),
        ("x = 5\nx", "5"),
        ("10 % 3", "1"),
        ("3 != 4", "True"),
        ("f'{1!r}'", "'1'"),
        (">>> 3 + 4", "7"),
        ("In [1]: 3 + 5", "8"),
        ("...", "Ellipsis"),
        ("10**30", "1" + "0" * 30),
    ],
)
def test_the_last_expression_is_the_value(shared: Client, code: str, value: str | None) -> None:
    outcome = shared.run(code)
    assert outcome.error is None
    assert outcome.value == value


def test_long_lists_are_not_cut(shared: Client) -> None:
    value = shared.run("list(range(5000))").value
    assert "..." not in value
    assert value.endswith("4999]")


def test_cells_are_counted_and_failing_ones_too(kernel: Client) -> None:
    counts = [kernel.run(code).count for code in ("1", "1/0", "x =", "", "  \n", "%nonsense", "!true", "2")]
    assert counts == [1, 2, 3, 4, 4, 4, 5, 6]


def test_in_and_out_are_kept(kernel: Client) -> None:
    kernel.run("6 * 7")
    assert kernel.run("_ + 0").value == "42"
    assert kernel.run("Out[1], _1, In[1], _i1").value == "(42, 42, '6 * 7', '6 * 7')"


def test_state_lives_between_cells(kernel: Client) -> None:
    kernel.run("x = 1\ndef f(): return x + 1")
    assert kernel.run("x += 1; f()").value == "3"


def test_an_error_tells_where(kernel: Client) -> None:
    kernel.run("def broken():\n    secret = 1\n    return undefined")
    outcome = kernel.run("a = 1\nbroken()")
    assert outcome.status == "error"
    assert outcome.error["name"] == "NameError"
    assert outcome.error["value"] == "name 'undefined' is not defined"
    trace = outcome.error["traceback"]
    assert trace[0] == "-" * 75
    assert trace[1].startswith("NameError")
    assert trace[1].endswith("Traceback (most recent call last)")
    assert trace[2].startswith("Cell In[2], line 2\n")
    assert "----> 2 broken()" in trace[2]
    assert trace[3].startswith("Cell In[1], line 3, in broken()")
    assert trace[-1] == "NameError: name 'undefined' is not defined"
    assert "\x1b" not in "".join(trace)


def test_causes_come_first_and_notes_last(shared: Client) -> None:
    code = (
        "try:\n    {}['k']\nexcept KeyError as e:\n    error = ValueError('bad')\n"
        "    error.add_note('look here')\n    raise error from e"
    )
    trace = shared.run(code).error["traceback"]
    assert [line for line in trace if line.startswith(("KeyError:", "\nThe above", "ValueError:", "look"))] == [
        "KeyError: 'k'",
        "\nThe above exception was the direct cause of the following exception:\n",
        "ValueError: bad",
        "look here",
    ]


def test_endless_recursion_is_folded(shared: Client) -> None:
    trace = shared.run("def f(n): return f(n + 1)\nf(0)").error["traceback"]
    assert len(trace) < 12
    assert any("skipping similar frames: f at line 1" in part for part in trace)


def test_errors_inside_libraries_show_their_frames(kernel: Client) -> None:
    kernel.run("import pandas as pd; df = pd.DataFrame({'a': [1]})")
    trace = kernel.run("df['b']").error["traceback"]
    assert any("pandas/core/frame.py:" in part and ", in DataFrame.__getitem__(self, key)\n" in part for part in trace)
    assert not any("cloche_kernel" in part or "interactiveshell" in part for part in trace)


def test_other_traceback_modes_and_tb_work(kernel: Client) -> None:
    kernel.run("1/0")
    assert kernel.run("%tb").error["name"] == "ZeroDivisionError"
    kernel.run("%xmode Minimal")
    assert [part.strip() for part in kernel.run("1/0").error["traceback"]] == ["ZeroDivisionError: division by zero"]


def test_a_syntax_error_has_one_piece_with_a_caret(shared: Client) -> None:
    outcome = shared.run("a = 1\nx = = 2")
    assert outcome.error["name"] == "SyntaxError"
    assert "line 2)" in outcome.error["value"]
    (trace,) = outcome.error["traceback"]
    assert "^" in trace
    assert trace.rstrip().endswith("SyntaxError: invalid syntax")


def test_a_shell_line_without_its_mark_is_a_syntax_error_that_counts(kernel: Client) -> None:
    assert kernel.run("echo hello world").error["name"] == "SyntaxError"
    assert kernel.run("!pwd").count == 2


def test_an_unprintable_error_is_still_an_error(shared: Client) -> None:
    code = "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad"
    assert shared.run(code).error["name"] == "Bad"


def test_exception_groups_have_a_traceback(shared: Client) -> None:
    outcome = shared.run("raise ExceptionGroup('both', [ValueError('a'), KeyError('b')])")
    assert outcome.error["name"] == "ExceptionGroup"
    assert any("ValueError: a" in line for line in outcome.error["traceback"])
    assert outcome.stderr == ""


def test_an_unknown_magic_is_a_usage_error(shared: Client) -> None:
    outcome = shared.run("%nonsense")
    assert "UsageError" in outcome.stderr
    assert outcome.error["name"] == "UsageError"
    assert outcome.status == "error"


def test_a_shell_line_runs_on_a_terminal(shared: Client) -> None:
    outcome = shared.run("!echo out; echo err >&2; test -t 1 && echo tty; exit 3")
    assert outcome.stdout == "out\r\nerr\r\ntty\r\n"
    assert outcome.error is None
    assert shared.run("_exit_code").value == "3"


def test_a_shell_line_takes_variables(shared: Client) -> None:
    assert shared.run("word = 'x y'\n!echo {word} $word").stdout == "x y x y\r\n"
    assert shared.run("lines = !printf 'a\\nb\\n'\nlines[1]").value == "'b'"


def test_cell_magics_work(shared: Client) -> None:
    assert shared.run("%%bash\necho one\necho two >&2").stdout == "one\n"
    assert shared.run("%%bash\nexit 3").error["name"] == "CalledProcessError"
    timed = shared.run("%%time\nq = 3")
    assert "Wall time" in timed.stdout
    assert shared.run("q").value == "3"
    assert shared.run("%%capture got\nprint('hidden')").stdout == ""
    assert shared.run("got.stdout").value == "'hidden\\n'"


def test_cd_changes_the_folder(kernel: Client) -> None:
    assert kernel.run("%cd /usr").stdout == "/usr\n"
    assert kernel.run("import os; os.getcwd()").value == "'/usr'"
    assert kernel.run("%cd -q /tmp").stdout == ""
    assert kernel.run("!pwd").stdout == "/tmp\r\n"


def test_pip_magic_runs_pip(shared: Client) -> None:
    outcome = shared.run("%pip --version")
    assert outcome.stdout.startswith("pip ") or "No module named pip" in outcome.stdout


def test_input_is_refused(shared: Client) -> None:
    assert shared.run("input('name? ')").error["name"] == "StdinNotImplementedError"
    assert shared.run("import getpass; getpass.getpass()").error["name"] == "StdinNotImplementedError"
    assert shared.run("import sys; sys.stdin.read()").value == "''"


def test_system_exit_is_an_error_and_the_kernel_lives(kernel: Client) -> None:
    kernel.run("x = 1")
    outcome = kernel.run("raise SystemExit(2)")
    assert (outcome.error["name"], outcome.error["value"]) == ("SystemExit", "2")
    assert "UserWarning" in outcome.stderr
    assert kernel.run("x").value == "1"


@pytest.mark.parametrize("code", ["exit()", "quit()", "exit", "import sys\nexit()"])
def test_exit_ends_the_kernel_after_done(nursery: Client, code: str) -> None:
    kernel = fork(nursery)
    outcome = kernel.run(code)
    assert outcome.status == "ok"
    with pytest.raises(Gone):
        kernel.next()
    assert exit_of(nursery, kernel) == 0
    kernel.close()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os; os._exit(7)", 7 << 8),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
    ],
)
def test_a_dying_process_just_ends(nursery: Client, code: str, status: int) -> None:
    kernel = fork(nursery)
    kernel.start(code)
    with pytest.raises(Gone):
        kernel.finish()
    assert exit_of(nursery, kernel) & ~0x80 == status
    kernel.close()


def test_the_kernel_leaves_at_end_of_file(lone: Client) -> None:
    lone.run("import atexit, threading, time\natexit.register(open('left', 'w').write, 'x')")
    lone.run("threading.Thread(target=time.sleep, args=(60,)).start()")
    lone.pipes.sock.shutdown(2)
    assert lone.process.wait(5) == 0


# -- variables and folders


def test_variables_of_a_run_are_put_back(kernel: Client) -> None:
    kernel.send({"op": "env", "set": {"GLOBAL": "g", "OTHER": "o"}})
    seen = "import os; [os.environ.get(k) for k in ('GLOBAL', 'OTHER', 'MINE')]"
    assert kernel.run(seen, {"GLOBAL": "run", "MINE": "q'\"\n\\"}).main["application/json"] == ["run", "o", "q'\"\n\\"]
    assert kernel.run(seen).main["application/json"] == ["g", "o", None]


@pytest.mark.parametrize(
    "code", ["1/0", "x =", "raise SystemExit", "import os; os.environ['MINE'] = 'z'", "del os.environ['MINE']"]
)
def test_variables_are_put_back_after_errors(kernel: Client, code: str) -> None:
    kernel.run("import os")
    kernel.run(code, {"MINE": "1"})
    assert kernel.run("os.environ.get('MINE', 'absent')").value == "'absent'"


def test_variables_do_not_disturb_cell_magics_or_names(kernel: Client) -> None:
    assert kernel.run("%%bash\necho $MINE", {"MINE": "x"}).stdout == "x\n"
    assert kernel.run("'os' in globals()", {"MINE": "x"}).value == "False"
    outcome = kernel.run("1/0", {"SECRET": "hunter2"})
    assert "hunter2" not in str(outcome.events)
    assert "line 1" in outcome.error["traceback"][2]


def test_impossible_variables_are_skipped(kernel: Client) -> None:
    outcome = kernel.run("import os; os.environ['GOOD']", {"BAD=NAME": "1", "NUL": "a\0b", "": "x", "GOOD": "yes"})
    assert outcome.value == "'yes'"


def test_the_time_zone_follows_its_variable(kernel: Client) -> None:
    kernel.send({"op": "env", "set": {"TZ": "UTC-3"}})
    assert kernel.run("import time; time.timezone").value == "-10800"


def test_a_box_made_from_anothers_memory_draws_its_own_numbers(kernel: Client) -> None:
    kernel.run("import random, numpy.random as n; random.seed(1); n.seed(1)")
    draw = "[random.random(), float(n.random())]"
    fixed = kernel.run(draw).value
    kernel.run("random.seed(1); n.seed(1)")
    kernel.send({"op": "env", "set": {}})
    assert kernel.run(draw).value == fixed
    kernel.run("random.seed(1); n.seed(1)")
    kernel.send({"op": "env", "set": {}, "renew": True})
    assert not set(kernel.run(draw).value.strip("[]").split(", ")) & set(fixed.strip("[]").split(", "))


def test_a_cell_that_runs_meanwhile_draws_its_own_numbers(kernel: Client) -> None:
    cell = (
        "random.seed(1); n.seed(1); import os, signal, time; {}; time.sleep(0.1); [random.random(), float(n.random())]"
    )
    kernel.run("import random, numpy.random as n")
    fixed = kernel.run(cell.format("pass")).value
    assert kernel.run(cell.format("pass")).value == fixed
    told = kernel.run(cell.format("os.kill(os.getpid(), 41)")).value
    assert not set(told.strip("[]").split(", ")) & set(fixed.strip("[]").split(", "))
    locked = "with n.mtrand._rand._bit_generator.lock: os.kill(os.getpid(), 41); time.sleep(0.1)"
    assert kernel.run(f"import os, time\n{locked}\n'went on'").value == "'went on'"


def test_a_cd_message_changes_the_folder_or_says_why_not(kernel: Client, tmp_path) -> None:
    odd = tmp_path / 'it\'s "odd"'
    odd.mkdir()
    kernel.send({"op": "cd", "path": str(odd)})
    assert kernel.next() == {"ev": "cd", "ok": True}
    assert kernel.run("import os; os.getcwd() == " + repr(str(odd))).value == "True"
    kernel.send({"op": "cd", "path": "/nowhere/at/all"})
    assert kernel.next() == {"ev": "cd", "ok": False, "reason": "No such file or directory"}
    (odd / "mine.py").write_text("answer = 42")
    assert kernel.run("import mine; mine.answer").value == "42"


def test_rubbish_on_the_wire_is_ignored(kernel: Client) -> None:
    kernel.pipes.sock.sendall(b'not json\n{"op":"unknown"}\n')
    assert kernel.run("1").value == "1"


def test_big_code_arrives_whole(kernel: Client) -> None:
    text = "x" * 3_000_000
    assert kernel.run(f"len('{text}')").value == "3000000"


# -- interrupts


def started(kernel: Client) -> None:
    """Waits until the cell's own code runs."""
    assert kernel.next()["ev"] == "count"
    assert kernel.next() == {"ev": "stream", "id": kernel.runs, "name": "stdout", "text": "go\n"}


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "while True: pass",
        "import asyncio; await asyncio.sleep(60)",
        "async def f():\n    while True: pass\nawait f()",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "get_ipython().system('sleep 60')",
        "import asyncio; asyncio.run(asyncio.sleep(60))",
        "import threading; threading.Event().wait(60)",
    ],
)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(kernel: Client, code: str) -> None:
    kernel.run("x = 41")
    kernel.start("print('go')\n" + code)
    started(kernel)
    time.sleep(0.15)  # inside the call that hangs, not before it
    kernel.interrupt()
    events = kernel.finish(interrupting=True)
    error = next(e for e in events if e["ev"] == "error")
    assert error["name"] in ("KeyboardInterrupt", "CancelledError")
    assert error["value"] == ""
    assert events[-1]["status"] == "error"
    assert kernel.run("x + 1").value == "42"


def test_a_caught_interrupt_is_no_error(kernel: Client) -> None:
    kernel.start("print('go')\nimport time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('caught')")
    started(kernel)
    time.sleep(0.1)  # inside the sleep, not before it
    kernel.interrupt()
    events = kernel.finish(interrupting=True)
    assert events[-1]["status"] == "ok"
    assert "caught\n" in [e.get("text") for e in events]


def test_an_interrupt_between_cells_is_ignored(kernel: Client) -> None:
    kernel.run("x = 1")
    for _ in range(5):
        kernel.interrupt()
        time.sleep(0.02)  # signals that are pending together are one
    assert kernel.run("x").value == "1"


def test_variables_are_put_back_after_an_interrupt(kernel: Client) -> None:
    kernel.start("print('go')\nimport time; time.sleep(60)", {"MINE": "1"})
    started(kernel)
    kernel.interrupt()
    kernel.finish(interrupting=True)
    assert kernel.run("import os; os.environ.get('MINE', 'absent')").value == "'absent'"


def test_a_storm_of_interrupts_breaks_no_message(kernel: Client) -> None:
    kernel.run("n = 0")
    for _ in range(10):
        kernel.start("print('go')\nwhile True: print('y' * 50)")
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            kernel.next()
        for _ in range(3):
            os.killpg(kernel.ready["pid"], signal.SIGINT)
        while kernel.next()["ev"] != "done":
            pass
    assert kernel.run("n").value == "0"


# -- asyncio


def test_a_cell_may_await_at_top_level(shared: Client) -> None:
    assert shared.run("import asyncio\nawait asyncio.sleep(0, 'done')").value == "'done'"
    assert (
        shared.run(
            "async with asyncio.timeout(5):\n    r = await asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])\nr"
        ).value
        == "[0, 1, 2]"
    )


def test_tasks_go_on_while_cells_await_and_between_cells(kernel: Client) -> None:
    kernel.run(
            "import asyncio\nseen = []\nasync def tick():\n    while True:\n"
            "        seen.append(1)\n        await asyncio.sleep(0.01)"
    )
    assert kernel.run("task = asyncio.create_task(tick())").error is None
    kernel.run("await asyncio.sleep(0.1)")
    first = int(kernel.run("len(seen)").value)
    assert first > 2
    time.sleep(0.3)  # between the cells, where the task must go on
    assert int(kernel.run("len(seen)").value) > first + 5
    assert kernel.run("task.cancel()").value == "True"


def test_asyncio_run_works_in_plain_code(shared: Client) -> None:
    assert shared.run("import asyncio\nasyncio.run(asyncio.sleep(0, 5))").value == "5"
    assert shared.run("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, 6))").value == "6"
    assert shared.run("await asyncio.sleep(0, 7)").value == "7"


def test_a_background_task_that_spins_does_not_lock_the_kernel_out(kernel: Client) -> None:
    kernel.run("import asyncio, time\nasync def spin():\n    while True: time.sleep(0.01)")
    kernel.run("t = asyncio.create_task(spin())")
    time.sleep(0.1)  # the task takes the loop after the cell; nothing of it is seen from here
    kernel.start("5")
    kernel.interrupt()
    assert next(e for e in kernel.finish() if e["ev"] == "display")["data"]["text/plain"] == "5"


def test_work_in_threads_comes_back_to_the_loop(kernel: Client) -> None:
    kernel.run("import asyncio, time\nt = asyncio.create_task(asyncio.to_thread(time.sleep, 0.05))")
    time.sleep(0.3)  # between the cells, where the loop must take it back
    assert kernel.run("t.done()").value == "True"
