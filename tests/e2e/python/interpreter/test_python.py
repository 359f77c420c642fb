# SPDX-License-Identifier: Apache-2.0
"""The Python kernel: IPython's habits, tasks that live on, and every way a kernel can end."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import e2b_code_interpreter as interpreter
import pytest

from support.either import Either, until


def out(done) -> str:
    return "".join(done.logs.stdout)


async def test_shell_lines_and_magics(cell: Either) -> None:
    assert out(await cell.run_code("!pwd")).strip() == "/home/user"
    assert out(await cell.run_code("%%bash\necho one\necho two")) == "one\ntwo\n"
    done = await cell.run_code("%%bash\nexit 3")
    assert done.error.name == "CalledProcessError"
    done = await cell.run_code("%cd /tmp\n%pwd")
    assert done.text == "/tmp"
    await cell.run_code("%cd /home/user")
    done = await cell.run_code("%no_such_magic")
    assert done.error.name == "UsageError"
    assert "no_such_magic" in "".join(done.logs.stderr)


async def test_output_of_children_and_of_c_is_captured(cell: Either) -> None:
    done = await cell.run_code(
        "import subprocess, os, sys\n"
        "subprocess.run(['sh', '-c', 'echo child; echo childerr >&2'])\n"
        "_ = os.write(1, b'raw\\n')"
    )
    assert "child\n" in out(done)
    assert "raw\n" in out(done)
    assert "childerr\n" in "".join(done.logs.stderr)


async def test_top_level_await_and_tasks_that_live_on(cell: Either) -> None:
    done = await cell.run_code("import asyncio\nawait asyncio.sleep(0.01, 'slept')")
    assert done.text == "slept"
    await cell.run_code(
        "seen = []\nasync def tick():\n    while True:\n        seen.append(1)\n"
        "        await asyncio.sleep(0.01)\ntask = asyncio.create_task(tick())"
    )

    async def ticked() -> bool:
        return int((await cell.run_code("len(seen)")).text) >= 5

    await until(ticked)
    await cell.run_code("task.cancel()")


async def test_input_is_refused_at_once(cell: Either) -> None:
    done = await cell.run_code("input('name? ')", timeout=10)
    assert done.error.name == "StdinNotImplementedError"


async def test_system_exit_is_an_error_the_kernel_survives(cell: Either) -> None:
    await cell.run_code("kept = 1")
    done = await cell.run_code("raise SystemExit(2)")
    assert done.error.name == "SystemExit"
    assert (await cell.run_code("kept")).text == "1"


async def test_every_cell_counts_also_a_failed_one(cell: Either) -> None:
    context = await cell.create_code_context()
    assert (await cell.run_code("1", context=context)).execution_count == 1
    assert (await cell.run_code("1/0", context=context)).execution_count == 2
    assert (await cell.run_code("2", context=context)).execution_count == 3


async def test_threads_of_a_cell_may_print(cell: Either) -> None:
    done = await cell.run_code(
        "import threading\nt = threading.Thread(target=lambda: print('from a thread'))\n"
        "t.start(); t.join()"
    )
    assert out(done) == "from a thread\n"


async def test_prng_state_differs_between_boxes() -> None:
    code = "import random, numpy, uuid\n(random.random(), numpy.random.rand(), uuid.uuid4().hex)"
    seen = set()
    for _ in range(3):
        with interpreter.Sandbox.create(timeout=60) as fresh:
            seen.add(fresh.run_code(code).text)
    assert len(seen) == 3
    numbers = [text.split(",")[0] for text in seen]
    assert len(set(numbers)) == 3


@pytest.mark.parametrize(
    "death", ["import os; os._exit(1)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
              "import ctypes; ctypes.string_at(0)"]
)  # fmt: skip
async def test_a_dead_kernel_says_so_and_comes_back(cell: Either, death: str) -> None:
    context = await cell.create_code_context(cwd="/tmp")
    await cell.run_code("x = 1", context=context)
    started = time.monotonic()
    done = await cell.run_code(death, context=context)
    assert time.monotonic() - started < 60
    assert done.error.name == "ContextRestarting"
    assert done.error.value.startswith("Context was restarted")
    again = await cell.run_code("import os; os.getcwd()", context=context)
    assert again.error is None
    assert again.text == "/tmp"
    assert (await cell.run_code("x", context=context)).error.name == "NameError"


async def test_exit_does_not_lose_the_next_cell(cell: Either) -> None:
    context = await cell.create_code_context()
    await cell.run_code("exit()", context=context)
    for _ in range(20):
        done = await cell.run_code("1 + 1", context=context)
        if done.error is None:
            break
    assert done.text == "2"


async def test_an_abandoned_cell_is_interrupted_and_state_is_kept(cell: Either) -> None:
    await cell.run_code("kept = 'yes'")
    with pytest.raises(interpreter.TimeoutException):
        await cell.run_code("import time\ntime.sleep(300)", timeout=2, envs={"LEFT": "over"})
    started = time.monotonic()
    done = await cell.run_code("1 + 1", timeout=60)
    assert done.text == "2"
    assert time.monotonic() - started < 60
    assert (await cell.run_code("kept")).text == "yes"
    assert (await cell.run_code("import os; os.getenv('LEFT', 'gone')")).text == "gone"


async def test_an_abandoned_cell_in_other_languages(cell: Either) -> None:
    for language, endless, kept, check in [
        ("javascript", "while (true) {}", "var kept = 1", "kept"),
        ("bash", "while :; do :; done", "kept=1", "echo $kept"),
    ]:
        context = await cell.create_code_context(language=language)
        await cell.run_code(kept, context=context)
        with pytest.raises(interpreter.TimeoutException):
            await cell.run_code(endless, context=context, timeout=1.5)
        done = await cell.run_code(check, context=context, timeout=60)
        assert (done.text or out(done).strip()) == "1", language


async def test_cells_of_one_context_wait_for_each_other(cell: Either, unique: str) -> None:
    context = await cell.create_code_context()
    other = interpreter.Sandbox.connect(cell.sandbox_id)
    answers: list[str] = []

    def slow() -> None:
        other.run_code(
            f"import time; open('/tmp/{unique}', 'w').close(); time.sleep(1); order = ['slow']", context=context
        )

    thread = threading.Thread(target=slow)
    thread.start()
    await until(lambda: cell.files.exists(f"/tmp/{unique}"))
    answers.append((await cell.run_code("order + ['fast']", context=context)).text)
    thread.join()
    assert answers == ["['slow', 'fast']"]


async def test_contexts_run_side_by_side(cell: Either, unique: str) -> None:
    contexts = [await cell.create_code_context() for _ in range(3)]
    other = interpreter.Sandbox.connect(cell.sandbox_id)
    meet = (
        "import glob, time\nopen('/tmp/{0}-{1}', 'w').close()\nend = time.monotonic() + 60\n"
        "while len(glob.glob('/tmp/{0}-*')) < 3 and time.monotonic() < end:\n    time.sleep(0.05)\n"
        "len(glob.glob('/tmp/{0}-*'))"
    )
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(other.run_code, meet.format(unique, n), context=context)
            for n, context in enumerate(contexts)
        ]
        assert [run.result().text for run in runs] == ["3"] * 3


def test_a_box_killed_during_a_cell_is_a_timeout_that_says_so() -> None:
    box = interpreter.Sandbox.create(timeout=60)
    timer = threading.Timer(1.5, box.kill)
    timer.start()
    try:
        with pytest.raises(
            interpreter.TimeoutException,
            match="sandbox was killed while the request was in progress",
        ):
            box.run_code("import time; time.sleep(300)")
    finally:
        timer.join()
        box.kill()


def test_a_kernel_without_memory_left_is_told_so() -> None:
    with interpreter.Sandbox.create(timeout=120) as fresh:
        done = fresh.run_code("x = []\nwhile True: x.append(bytearray(50_000_000))")
        assert done.error.name == "ContextRestarting"
        assert "ran out of its 2048 MB of memory" in done.error.traceback
        assert fresh.run_code("1 + 1").text == "2"
        crash = fresh.run_code("import ctypes; ctypes.string_at(0)")
        assert "signal 11" in crash.error.traceback
        assert "status 3" in fresh.run_code("import os; os._exit(3)").error.traceback
