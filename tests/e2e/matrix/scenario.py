# SPDX-License-Identifier: Apache-2.0
"""The scenario of the matrix, for the Python clients.

    scenario.py WAY

Runs every step with whatever version of e2b and e2b-code-interpreter is on the path and prints one JSON object per
step: its name, its state ("ok", "absent" or "FAIL") and why. A step raises Absent only when the client itself has no
such call; everything else that goes wrong is a failure. WAY is "url" (one address for API and sandboxes) or "domain"
(a name per sandbox). What a version calls differently is asked of the client, never of its version number.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import sys
import time
import traceback
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

import e2b
import e2b_code_interpreter as interpreter

STEP_SECONDS = 60
way = sys.argv[1]
RUN = f"matrix-{uuid.uuid4().hex[:12]}"


class Absent(Exception):
    """This version of the client does not have what the step is about."""


steps: list[tuple[str, Callable[[], None]]] = []


def step(name: str, only: str = "") -> Callable[[Callable[[], None]], None]:
    """Adds a step, or none when it is about the other way to a sandbox."""

    def add(run: Callable[[], None]) -> None:
        if only in ("", way):
            steps.append((name, run))

    return add


def takes(call: Callable[..., Any], name: str) -> bool:
    """Whether CALL has a parameter of that name, under whatever decorators."""
    return name in inspect.signature(call).parameters


def needs(owner: object, *names: str) -> str:
    """The first of these names that OWNER has."""
    for name in names:
        if hasattr(owner, name):
            return name
    raise Absent(f"no {' or '.join(names)}")


def same(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def until(ask: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end, f"still {found!r} after {seconds} s"
        time.sleep(0.05)  # between looks


def make(kind: Any = e2b.Sandbox, **options: Any) -> Any:
    """Creates a sandbox: by `create` since 2.0, by the constructor before."""
    return (kind.create if hasattr(kind, "create") else kind)(timeout=120, **options)


def fetch(url: str, **options: Any) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, **options), timeout=20) as answer:
        return answer.read()


def multipart(data: bytes) -> dict[str, Any]:
    mark = uuid.uuid4().hex
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n\r\n'
    return {
        "data": head.encode() + data + f"\r\n--{mark}--\r\n".encode(),
        "headers": {"Content-Type": f"multipart/form-data; boundary={mark}"},
    }


class Shared:
    """The sandbox that most steps use."""

    made: Any = None

    @property
    def box(self) -> Any:
        assert self.made is not None, "no sandbox: create failed"
        return self.made


shared = Shared()


@step("create")
def _create() -> None:
    shared.made = make(template="base", metadata={"run": RUN}, envs={"FROM_CREATE": "yes"})
    assert shared.box.sandbox_id
    same(shared.box.is_running(), True)
    same(shared.box.commands.run("echo $FROM_CREATE").stdout, "yes\n")


@step("files")
def _files() -> None:
    files = shared.box.files
    data = bytes(range(256)) * 4096
    files.write("work/deep/text", "grüße\n")
    files.write("work/data", data)
    same(files.read("work/deep/text"), "grüße\n")
    same(bytes(files.read("work/data", format="bytes")), data)
    same(b"".join(files.read("work/data", format="stream")), data)
    same(files.make_dir("work/made"), True)
    same(files.make_dir("work/made"), False)
    listed = {each.name: each for each in files.list("work")}
    same({name: each.type.value for name, each in listed.items()}, {"deep": "dir", "made": "dir", "data": "file"})
    same(listed["data"].path, "/home/user/work/data")
    if hasattr(listed["data"], "size"):
        same(listed["data"].size, len(data))
    if hasattr(files, "get_info"):
        same((files.get_info("work/data").size, files.get_info("work/deep").type.value), (len(data), "dir"))
    same(files.rename("work/data", "work/moved").path, "/home/user/work/moved")
    same((files.exists("work/data"), files.exists("work/moved")), (False, True))
    files.remove("work/moved")
    same(files.exists("work/moved"), False)
    write_many(files)
    try:
        files.read("work/none")
    except e2b.NotFoundException:
        return
    raise AssertionError("a missing file was read")


def write_many(files: Any) -> None:
    """`write_files` since 2.0, a list given to `write` before; 1.0 has neither."""
    many = [{"path": f"work/many/{name}", "data": name} for name in ("one", "two")]
    if hasattr(files, "write_files"):
        files.write_files(many)
    elif takes(files.write, "path_or_files"):
        files.write(many)
    else:
        return
    same(sorted(each.name for each in files.list("work/many")), ["one", "two"])
    same(files.read("work/many/two"), "two")


@step("commands")
def _commands() -> None:
    commands = shared.box.commands
    done = commands.run("echo $A; pwd; id -un; echo err >&2", envs={"A": "b c"}, cwd="/tmp", user="root")
    same((done.stdout, done.stderr, done.exit_code), ("b c\n/tmp\nroot\n", "err\n", 0))
    try:
        commands.run("echo gone; exit 7")
    except e2b.CommandExitException as error:
        same((error.exit_code, error.stdout), (7, "gone\n"))
    else:
        raise AssertionError("exit code 7 raised nothing")
    lines: list[str] = []
    commands.run("for i in 1 2 3; do echo $i; done", on_stdout=lines.append)
    same("".join(lines), "1\n2\n3\n")
    handle = commands.run("echo begun; sleep 300", background=True)
    assert handle.pid in [each.pid for each in commands.list()]
    heard = commands.connect(handle.pid)
    same(heard.pid, handle.pid)
    same(commands.kill(handle.pid), True)
    try:
        handle.wait()
    except e2b.CommandExitException as error:
        assert error.exit_code != 0, error
    else:
        raise AssertionError("a killed command ended well")
    same(commands.kill(handle.pid), False)


@step("stdin")
def _stdin() -> None:
    commands = shared.box.commands
    open_stdin = {"stdin": True} if takes(commands.run, "stdin") else {}
    handle = commands.run("read -r a; echo got $a", background=True, **open_stdin)
    commands.send_stdin(handle.pid, "hello\n")
    same(handle.wait().stdout, "got hello\n")
    if hasattr(commands, "close_stdin"):
        counter = commands.run("wc -c", background=True, **open_stdin)
        commands.send_stdin(counter.pid, "12345")
        commands.close_stdin(counter.pid)
        same(counter.wait().stdout.strip(), "5")
    if hasattr(commands, "stream_input"):
        lines = commands.run("read -r a; read -r b; echo $b $a", background=True, **open_stdin)
        commands.stream_input(lines.pid, iter(["one\n", b"two\n"]))
        same(lines.wait().stdout, "two one\n")


@step("pty")
def _pty() -> None:
    pty = shared.box.pty
    handle = pty.create(e2b.PtySize(rows=24, cols=80), cwd="/tmp", envs={"IN_PTY": "yes"})
    pty.resize(handle.pid, e2b.PtySize(rows=33, cols=99))
    pty.send_stdin(handle.pid, b"stty size; echo $IN_PTY-$((6 * 7)); pwd; exit 0\n")
    heard = bytearray()
    same(handle.wait(on_pty=heard.extend).exit_code, 0)
    text = heard.decode(errors="replace")
    for wanted in ("33 99", "yes-42", "/tmp"):
        assert wanted in text, f"{wanted!r} is not in {text!r}"


@step("watch")
def _watch() -> None:
    files = shared.box.files
    files.make_dir("watched/below")
    handle = files.watch_dir("watched")
    files.write("watched/new", "x")
    files.rename("watched/new", "watched/old")
    files.remove("watched/old")
    seen: set[tuple[str, str]] = set()

    def complete() -> bool:
        seen.update((each.name, each.type.value) for each in handle.get_new_events())
        return {("new", "create"), ("new", "write"), ("new", "rename"), ("old", "remove")} <= seen

    until(complete)
    handle.stop()
    if takes(files.watch_dir, "recursive"):
        deep = files.watch_dir("watched", recursive=True)
        files.write("watched/below/deep", "x")
        until(lambda: "below/deep" in [each.name for each in deep.get_new_events()])
        deep.stop()


@step("urls", only="domain")
def _urls() -> None:
    shared.box.commands.run("mkdir -p /tmp/www; echo served >/tmp/www/page")
    server = shared.box.commands.run("python3 -m http.server 8000 --directory /tmp/www", background=True)

    def answers() -> bool:
        try:
            return fetch(f"https://{shared.box.get_host(8000)}/page") == b"served\n"
        except OSError:
            return False

    until(answers)
    server.kill()


@step("timeout")
def _timeout() -> None:
    for seconds in (300, 600):
        shared.box.set_timeout(seconds)
        if hasattr(shared.box, "get_info") and hasattr(shared.box.get_info(), "end_at"):
            left = shared.box.get_info().end_at.timestamp() - time.time()
            assert seconds - 30 < left < seconds + 5, f"{left} s are left of {seconds}"
    same(shared.box.is_running(), True)


def listed(**options: Any) -> list[Any]:
    """All sandboxes: a list up to 1.11, pages since 2.0."""
    found = e2b.Sandbox.list(**options)
    if isinstance(found, list):
        return found
    all_pages: list[Any] = []
    while found.has_next:
        all_pages += found.next_items()
    return all_pages


@step("list")
def _list() -> None:
    mine = {each.sandbox_id: each for each in listed()}
    assert shared.box.sandbox_id in mine, sorted(mine)
    same(mine[shared.box.sandbox_id].metadata, {"run": RUN})
    if not takes(e2b.Sandbox.list, "query"):
        return
    from e2b.sandbox.sandbox_api import SandboxQuery

    query = SandboxQuery(metadata={"run": RUN})
    same([each.sandbox_id for each in listed(query=query)], [shared.box.sandbox_id])


@step("connect")
def _connect() -> None:
    again = e2b.Sandbox.connect(shared.box.sandbox_id)
    same(again.sandbox_id, shared.box.sandbox_id)
    shared.box.files.write("from-the-first", "1")
    same(again.files.read("from-the-first"), "1")
    same(again.commands.run("echo again").stdout, "again\n")


@step("pause")
def _pause() -> None:
    box = shared.box
    name = needs(box, "pause", "beta_pause")
    box.files.write("before", "kept")
    counting = box.commands.run("sleep 301", background=True)
    getattr(box, name)()
    same(box.is_running(), False)
    woken = e2b.Sandbox.connect(box.sandbox_id, timeout=300)
    same(woken.is_running(), True)
    same(woken.files.read("before"), "kept")
    assert counting.pid in [each.pid for each in woken.commands.list()], "the process is gone"
    woken.commands.kill(counting.pid)
    shared.made = woken


@step("signed")
def _signed() -> None:
    if not hasattr(e2b.Sandbox, "create") and not takes(e2b.Sandbox.__init__, "secure"):
        raise Absent("no option secure")
    box = make(template="base", secure=True)
    try:
        sign = {"use_signature": True} if takes(box.download_url, "use_signature") else {}
        box.files.write("/home/user/secret", "signed")
        same(fetch(box.download_url("/home/user/secret", **sign)), b"signed")
        same(fetch(box.download_url("/home/user/secret", use_signature_expiration=60, **sign)), b"signed")
        fetch(box.upload_url("/home/user/up", **sign), **multipart(b"uploaded"))
        same(box.files.read("/home/user/up"), "uploaded")
        other = re.sub("(/|%2F)up", r"\1secret", box.download_url("/home/user/up", **sign))
        try:
            fetch(other)
        except urllib.error.HTTPError as error:
            same(error.code, 401)
        else:
            raise AssertionError("a signature for another file was taken")
    finally:
        box.kill()


# One for all steps: some versions keep their connections for the process, and those belong to the loop that made them.
loop = asyncio.new_event_loop()


@step("async")
def _async() -> None:
    loop.run_until_complete(asyncio.wait_for(in_async(), STEP_SECONDS))


async def in_async() -> None:
    box = await e2b.AsyncSandbox.create(template="base", timeout=120)
    try:
        lines: list[str] = []
        handle = await box.commands.run(
            "for i in 1 2 3; do echo $i; sleep 0.1; done", background=True, on_stdout=lines.append
        )
        await box.files.write("one", "1")
        same(await box.files.read("one"), "1")
        same((await handle.wait()).exit_code, 0)
        same("".join(lines), "1\n2\n3\n")
        seen: list[str] = []
        watch = await box.files.watch_dir("/home/user", on_event=lambda event: seen.append(event.name))
        await box.files.write("two", "2")
        for _ in range(150):
            if "two" in seen:
                break
            await asyncio.sleep(0.1)  # between looks
        assert "two" in seen, f"only {seen} were seen"
        await watch.stop()
        many = await asyncio.gather(*(box.commands.run(f"echo {i}") for i in range(10)))
        same([each.stdout.strip() for each in many], [str(i) for i in range(10)])
        heard = bytearray()
        pty = await box.pty.create(e2b.PtySize(rows=24, cols=80), on_data=heard.extend)
        await box.pty.send_stdin(pty.pid, b"echo $((6 * 7)); exit 0\n")
        same((await pty.wait()).exit_code, 0)
        assert b"42" in heard, heard
        again = await e2b.AsyncSandbox.connect(box.sandbox_id)
        same(await again.files.read("two"), "2")
    finally:
        await box.kill()
    same(await e2b.AsyncSandbox.kill(box.sandbox_id), False)


@step("kill")
def _kill() -> None:
    box = shared.box
    same(e2b.Sandbox.kill(box.sandbox_id), True)
    same(box.is_running(), False)
    same(e2b.Sandbox.kill(box.sandbox_id), False)
    assert box.sandbox_id not in [each.sandbox_id for each in listed()]
    shared.made = None
    for call, wanted in (
        (lambda: box.files.read("before"), e2b.TimeoutException),
        # The first versions can't read the answer to a stream that was refused; anything but success, then.
        (lambda: box.commands.run("true"), Exception),
    ):
        try:
            call()
        except wanted:
            continue
        raise AssertionError("a killed sandbox answered")


@step("template")
def _template() -> None:
    needs(e2b, "Template")
    built = e2b.Template().from_template("base").set_envs({"BUILT": "in"}).run_cmd("echo $BUILT >/tmp/built")
    e2b.Template.build(built, alias=RUN, cpu_count=1, memory_mb=512)
    box = make(template=RUN)
    try:
        same(box.files.read("/tmp/built"), "in\n")
    finally:
        box.kill()


class Notebook:
    """The sandbox of the interpreter's steps; it lives as long as the process."""

    made: Any = None

    @property
    def box(self) -> Any:
        assert self.made is not None, "no sandbox: run_code failed"
        return self.made


notebook = Notebook()


def reachable(box: Any) -> None:
    """Interpreters before 2.9 know no address but names, even where their e2b reads E2B_SANDBOX_URL."""
    if way == "url" and not box._jupyter_url.startswith(os.environ["E2B_SANDBOX_URL"]):
        raise Absent("the interpreter does not read E2B_SANDBOX_URL")


@step("run_code")
def _run_code() -> None:
    notebook.made = make(interpreter.Sandbox)
    box = notebook.box
    reachable(box)
    same(box.run_code("x = 41").text, None)
    same(box.run_code("x + 1").text, "42")
    heard: list[str] = []
    done = box.run_code(
        "import sys\nprint('out')\nprint('err', file=sys.stderr)", on_stdout=lambda line: heard.append(line.line)
    )
    same((done.logs.stdout, done.logs.stderr, heard), (["out\n"], ["err\n"], ["out\n"]))
    failed = box.run_code("1 / 0")
    same((failed.error.name, failed.error.value), ("ZeroDivisionError", "division by zero"))
    assert "1 / 0" in failed.error.traceback
    same(box.run_code("import os; os.environ['E']", envs={"E": "v"}).text, "v")
    table = box.run_code("import pandas; pandas.DataFrame({'a': [1, 2]})").results[0]
    assert "<table" in table.html, table.html


@step("languages")
def _languages() -> None:
    reachable(notebook.box)
    for language, code, wanted in (
        ("javascript", "console.log([1, 2, 3].map((x) => x * 2).join())", "2,4,6\n"),
        ("bash", "echo $((6 * 7))", "42\n"),
        ("r", "cat(sum(1:10), '\\n')", "55 \n"),
        ("java", "System.out.println(6 * 7);", "42\n"),
    ):
        done = notebook.box.run_code(code, language=language)
        assert done.error is None, f"{language}: {done.error}"
        same(("".join(done.logs.stdout), language), (wanted, language))


@step("contexts")
def _contexts() -> None:
    reachable(notebook.box)
    box = notebook.box
    context = box.create_code_context(cwd="/tmp", language="python")
    box.run_code("where = 'there'", context=context)
    same(box.run_code("where", context=context).text, "there")
    same(box.run_code("import os; os.getcwd()", context=context).text, "/tmp")
    same(box.run_code("where").error.name, "NameError")
    if not hasattr(box, "list_code_contexts"):
        return
    assert context.id in [each.id for each in box.list_code_contexts()]
    box.restart_code_context(context)
    same(box.run_code("where", context=context).error.name, "NameError")
    box.remove_code_context(context)
    assert context.id not in [each.id for each in box.list_code_contexts()]


@step("charts")
def _charts() -> None:
    reachable(notebook.box)
    code = "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.title('T')\nplt.show()"
    result = notebook.box.run_code(code).results[0]
    assert result.png, "no picture"
    if not hasattr(result, "chart"):
        raise Absent("results have no chart")
    same((result.chart.type.value, result.chart.title), ("bar", "T"))
    same([(each.label, each.value) for each in result.chart.elements], [("a", 1), ("b", 2)])
    # Kinds that the client does not know are beside what it knows: bars with bins, an image of type unknown.
    code = "f, (a, b) = plt.subplots(1, 2)\na.hist([1, 1, 2], bins=2)\nb.imshow([[1, 2], [3, 4]])\nplt.show()"
    result = notebook.box.run_code(code).results[0]
    same((result.chart.type.value, result.chart.elements[0].type.value), ("superchart", "bar"))
    same([each.value for each in result.chart.elements[0].elements], [2, 1])
    image = notebook.box.run_code("plt.imshow([[1, 2], [3, 4]])\nplt.title('I')\nplt.show()").results[0]
    same((image.chart.type.value, image.chart.title, image.chart.elements), ("unknown", "I", []))


@step("run_code_async")
def _interpreter_async() -> None:
    loop.run_until_complete(asyncio.wait_for(interpreter_in_async(), STEP_SECONDS))


async def interpreter_in_async() -> None:
    box = await interpreter.AsyncSandbox.create(timeout=120)
    try:
        reachable(box)
        await box.run_code("x = 41")
        same((await box.run_code("x + 1")).text, "42")
        context = await box.create_code_context(cwd="/tmp")
        same((await box.run_code("import os; os.getcwd()", context=context)).text, "/tmp")
    finally:
        await box.kill()


def too_slow(*_: object) -> None:
    raise AssertionError(f"took more than {STEP_SECONDS} s")


def perform(run: Callable[[], None]) -> tuple[str, str]:
    """The state of one step and why."""
    signal.alarm(STEP_SECONDS + 5)
    try:
        run()
    except Absent as reason:
        return "absent", str(reason)
    except BaseException as error:
        traceback.print_exc()
        return "FAIL", f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return "ok", ""


def main() -> None:
    signal.signal(signal.SIGALRM, too_slow)
    for name, run in steps:
        print(f"--- {name}", file=sys.stderr, flush=True)
        state, why = perform(run)
        print(json.dumps({"step": name, "state": state, "why": why}), flush=True)
    for left in (shared.made, notebook.made):
        if left is not None:
            left.kill()


main()
sys.stderr.flush()
# The newer clients' native threads now and then abort an interpreter that is being torn down.
os._exit(0)
