# SPDX-License-Identifier: Apache-2.0
"""Everything a box had in its memory is there after a pause: one long sleep, looked at from all sides.

The state is made once for each flavour of the SDK, the box sleeps, wakes, sleeps and
wakes again, and every test looks at one thing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import e2b_code_interpreter as interpreter
import pytest_asyncio

from support.either import Either, until
from support.paused import COUNTING

PREPARE = """
import os, random, socket, sqlite3, subprocess, tempfile, threading, time
import numpy, pandas

number = 41
array = numpy.arange(1_000_000)
frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})

def steps():
    for step in range(10):
        yield step
walk = steps()
first_steps = [next(walk), next(walk)]

held = open("/tmp/held", "w+")
held.write("not flushed yet")
gone = open("/tmp/gone", "w+")
gone.write("deleted but open")
gone.flush()
os.unlink("/tmp/gone")
folder = tempfile.mkdtemp()
linked = open(f"{folder}/linked", "w+")
os.link(linked.name, f"{folder}/elsewhere")
os.unlink(linked.name)
database = sqlite3.connect("/tmp/base.db")
database.execute("create table t (x)")
database.execute("insert into t values (1)")

listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
client.sendall(b"sent before the sleep")
pair = socket.socketpair()
readable, writable = os.pipe()
os.write(writable, b"in the pipe")

ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()

child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
os.makedirs("/tmp/elsewhere", exist_ok=True)
os.chdir("/tmp/elsewhere")
os.environ["SET_IN_A_CELL"] = "kept"
clock = time.monotonic()
wall = time.time()
process_id = os.getpid()
"""

SERVER = "exec python3 -m http.server 8900 --bind 127.0.0.1"


@dataclass
class Slept:
    box: Either
    before: dict[str, Any] = field(default_factory=dict)


async def pause_and_connect(box: Either) -> None:
    assert await box.pause() is True
    await box.connect(timeout=300)


@pytest_asyncio.fixture(scope="module", params=["sync", "async"])
async def slept(request) -> AsyncIterator[Slept]:
    sdk = interpreter.Sandbox if request.param == "sync" else interpreter.AsyncSandbox
    made = sdk.create(timeout=300, envs={"GIVEN": "at launch"}, metadata={"kept": "yes"})
    box = Either(await made if request.param == "async" else made)
    try:
        it = Slept(box)
        prepared = await box.run_code(PREPARE)
        assert prepared.error is None, prepared.error
        await box.run_code("globalThis.made = {n: 41}; const kept = [1, 2, 3]", language="javascript")
        await box.run_code("LAMP=lit; cd /opt", language="bash")
        context = await box.create_code_context(cwd="/tmp")
        await box.run_code("own = 'of the context'", context=context)
        it.before["context"] = context
        counting = await box.commands.run(COUNTING, background=True, timeout=0)
        talker = await box.commands.run(
            'while read line && [ $line != bye ]; do echo "heard $line"; done', background=True, timeout=0, stdin=True
        )
        web = await box.commands.run(SERVER, background=True, timeout=0, cwd="/tmp")
        it.before |= {"counting": counting.pid, "talker": talker.pid, "web": web.pid}
        if box.is_async:
            terminal = await box.pty.create(interpreter.PtySize(rows=20, cols=90), on_data=lambda _: None, timeout=0)
        else:
            terminal = await box.pty.create(interpreter.PtySize(rows=20, cols=90), timeout=0)
        await box.pty.send_stdin(terminal.pid, b"LANTERN=glowing; cd /usr/share\n")
        it.before["terminal"] = terminal.pid
        await until(lambda: answers(box))
        await box.files.write("/tmp/count-seen", (await box.commands.run("cat /tmp/count")).stdout)
        it.before["token"] = box.inner._envd_access_token
        it.before["ticks"] = int((await box.run_code("ticks")).text)
        assert await box.pause() is True
        assert (await box.get_info()).state.value == "paused"
        await asyncio.sleep(1.5)  # the clocks are looked at afterwards: so long it was asleep
        await box.connect(timeout=300)
        await pause_and_connect(box)
        yield it
    finally:
        await box.kill()


async def answers(box: Either) -> bool:
    got = await box.commands.run("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8900/ || true")
    return got.stdout == "200"


async def value(slept: Slept, code: str, **options: Any) -> str:
    """The text of the main result, in which a string has lost its quotes, or what was printed."""
    got = await slept.box.run_code(code, **options)
    assert got.error is None, got.error.traceback
    return got.text or "".join(got.logs.stdout)


async def test_variables_arrays_and_frames(slept: Slept) -> None:
    assert await value(slept, "number + 1") == "42"
    assert await value(slept, "int(array.sum())") == str(999_999 * 1_000_000 // 2)
    assert await value(slept, "frame.b.tolist()") == "['x', 'y']"


async def test_a_generator_stands_where_it_stood(slept: Slept) -> None:
    assert await value(slept, "list(walk)") == str(list(range(2, 10)))


async def test_the_same_process_with_its_threads(slept: Slept) -> None:
    assert await value(slept, "os.getpid() == process_id") == "True"
    first = int(await value(slept, "ticks"))
    assert first >= slept.before["ticks"]

    async def ticks_on() -> bool:
        return int(await value(slept, "ticks")) > first

    await until(ticks_on)


async def test_open_files_survive_a_pause(slept: Slept) -> None:
    assert await value(slept, "held.write('!'); held.flush(); open('/tmp/held').read()") == "not flushed yet!"
    assert await value(slept, "gone.seek(0); gone.read()") == "deleted but open"
    assert await value(slept, "linked.write('!'); linked.flush(); open(f'{folder}/elsewhere').read()") == "!"
    assert await value(slept, "os.listdir(folder)") == "['elsewhere']"
    assert await value(slept, "database.execute('select x from t').fetchall()") == "[(1,)]"


async def test_loopback_connections_pipes_and_pairs(slept: Slept) -> None:
    assert await value(slept, "server.recv(100)") == "b'sent before the sleep'"
    assert await value(slept, "server.sendall(b'back'); client.recv(10)") == "b'back'"
    assert await value(slept, "pair[0].send(b'x'); pair[1].recv(1)") == "b'x'"
    assert await value(slept, "os.read(readable, 100)") == "b'in the pipe'"
    assert await value(slept, "c = socket.create_connection(listener.getsockname()); c.close(); 'listens'") == "listens"


async def test_a_child_process_of_the_kernel(slept: Slept) -> None:
    code = "child.stdin.write('echoed\\n'); child.stdin.flush(); child.stdout.readline()"
    assert await value(slept, code) == "echoed\\n"


async def test_folder_and_environment_survive_a_pause(slept: Slept) -> None:
    assert await value(slept, "os.getcwd()") == "/tmp/elsewhere"
    assert await value(slept, "os.environ['SET_IN_A_CELL'], os.environ['GIVEN']") == "('kept', 'at launch')"
    assert (await slept.box.commands.run("echo $GIVEN")).stdout == "at launch\n"


async def test_the_clocks_are_right_after_a_pause(slept: Slept) -> None:
    asked = time.time()
    now = float(await value(slept, "time.time()"))
    said = float((await slept.box.commands.run("date +%s.%N")).stdout)
    assert asked - 0.1 <= now <= said <= time.time() + 0.1, "the wall clock is right after a sleep"
    passed = float(await value(slept, "time.monotonic() - clock"))
    assert 0 <= passed < 600, "the monotonic clock goes forward, and by a believable amount"
    slow = float(await value(slept, "t = time.monotonic(); time.sleep(0.2); time.monotonic() - t"))
    assert 0.19 < slow < 30


async def test_node_and_bash_kernels(slept: Slept) -> None:
    assert await value(slept, "made.n + kept.length", language="javascript") == "44"
    assert await value(slept, "echo $LAMP $PWD", language="bash") == "lit /opt\n"


async def test_contexts_survive_a_pause(slept: Slept) -> None:
    assert await value(slept, "own", context=slept.before["context"]) == "of the context"


async def test_background_commands_run_on_and_can_be_joined(slept: Slept) -> None:
    box = slept.box
    pids = [process.pid for process in await box.commands.list()]
    assert {slept.before["counting"], slept.before["talker"], slept.before["web"]} <= set(pids)
    seen = int(await box.files.read("/tmp/count-seen"))
    first = int(await box.files.read("/tmp/count"))
    assert first >= seen
    await until(lambda: higher(box, first), 10)


async def higher(box: Either, than: int) -> bool:
    return int(await box.files.read("/tmp/count")) > than


async def test_a_command_still_listens_to_its_input(slept: Slept) -> None:
    box, pid = slept.box, slept.before["talker"]
    heard: list[str] = []
    if box.is_async:
        handle = await box.commands.connect(pid, on_stdout=heard.append, timeout=0)
    else:
        handle = await box.commands.connect(pid, timeout=0)
    await box.commands.send_stdin(pid, "me\n")
    if box.is_async:
        await until(lambda: "heard me\n" in "".join(heard), 10)
        await handle.disconnect()
    else:
        await box.commands.send_stdin(pid, "bye\n")
        await handle.wait(on_stdout=heard.append)
        assert "heard me\n" in "".join(heard)


async def test_a_terminal_survives_a_pause(slept: Slept) -> None:
    box, pid = slept.box, slept.before["terminal"]
    seen: list[bytes] = []
    if box.is_async:
        handle = await box.pty.connect(pid, on_data=lambda data: seen.append(bytes(data)))
    else:
        handle = await box.pty.connect(pid)
    await box.pty.send_stdin(pid, b"echo a-$LANTERN-b $PWD $(stty size) | tr ' ' ,; exit\n")
    with contextlib.suppress(interpreter.CommandExitException):
        if box.is_async:
            await handle.wait()
        else:
            await handle.wait(on_pty=lambda data: seen.append(bytes(data)))
    assert b"a-glowing-b,/usr/share,20,90" in b"".join(seen)


async def test_a_listening_server_survives_a_pause(slept: Slept) -> None:
    assert await answers(slept.box)


async def test_token_metadata_and_the_old_handle(slept: Slept) -> None:
    box = slept.box
    sdk = interpreter.AsyncSandbox if box.is_async else interpreter.Sandbox
    again = sdk.connect(box.sandbox_id)
    again = Either(await again if box.is_async else again)
    assert again.inner._envd_access_token == slept.before["token"]
    assert (await box.get_info()).metadata == {"kept": "yes"}
    assert await box.is_running()
