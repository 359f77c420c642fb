# SPDX-License-Identifier: Apache-2.0
"""The agent's code-interpreter API, driven over HTTP as a client does, with the real kernels in a throwaway template.

The agent runs in its own mount and pid namespaces on an overlay of the built default template, so it needs root and the
template store ($CLOCHE_TEMPLATES, default /var/cache/cloche). $CLOCHE_AGENT names the program, default
build/src/agent/cloche-agent.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
STORE = Path(os.environ.get("CLOCHE_TEMPLATES", "/var/cache/cloche"))
AGENT = Path(os.environ.get("CLOCHE_AGENT", TOP / "build/src/agent/cloche-agent"))
RECIPE = STORE / "templates/code-interpreter-v1.json"

Event = dict[str, Any]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Box:
    """One running agent and the ways to talk to it."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.process = process

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        c = self.connect()
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        c.request(method, path, text, headers or {})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, data

    def raw(self, **request: Any) -> bytes:
        status, data = self.call("POST", "/execute", request)
        assert status == 200, data
        return data

    def run(self, code: str, **more: Any) -> list[Event]:
        return [json.loads(line) for line in self.raw(code=code, **more).decode("ascii").splitlines()]

    def text(self, code: str, **more: Any) -> str:
        return next(e["text"] for e in self.run(code, **more) if e["type"] == "result")

    def open(self, code: str, **more: Any) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Starts an execution and returns once its head is there."""
        c = self.connect()
        c.request("POST", "/execute", json.dumps({"code": code, **more}))
        return c, c.getresponse()

    def context(self, **more: Any) -> str:
        status, data = self.call("POST", "/contexts", more)
        assert status == 200, data
        return str(json.loads(data)["id"])

    def contexts(self) -> list[dict[str, str]]:
        return list(json.loads(self.call("GET", "/contexts")[1]))


def begun(answer: http.client.HTTPResponse) -> None:
    """Returns once the cell printed `go`."""
    while event := json.loads(answer.readline()):
        if event["type"] == "stdout" and event["text"].startswith("go"):
            return


def leave(c: http.client.HTTPConnection) -> None:
    """Closes in order, as the gate does for a client that left. Closing with bytes unread alone would send a reset,
    which says cut off."""
    c.sock.shutdown(socket.SHUT_WR)
    c.close()


def cut_off(c: http.client.HTTPConnection) -> None:
    """Closes by a reset, as the gate does when a sandbox is paused under its clients."""
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


def kinds(events: list[Event]) -> list[str]:
    return [e["type"] for e in events]


def error_of(events: list[Event]) -> Event:
    (e,) = [e for e in events if e["type"] == "error"]
    return e


def boot_packet() -> bytes:
    template = json.loads(RECIPE.read_text())
    fields = {
        1: "ibox",
        5: json.dumps({"env": template["env"], "user": "user", "workdir": "/home/user"}),
        6: json.dumps({"envVars": {"TEST_ENV_VAR": "supertest"}}),
    }
    return b"".join(struct.pack("=II", tag, len(v.encode())) + v.encode() for tag, v in fields.items())


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    if os.geteuid() != 0 or not RECIPE.exists() or not AGENT.exists():
        pytest.skip("needs root, the built template store and the agent program")
    lowers = ":".join(str(STORE / "layers" / h / "fs") for h in json.loads(RECIPE.read_text())["layers"])
    root = "/mnt/root"
    script = f"""
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work {root}
mount -t overlay overlay -o lowerdir={shlex.quote(lowers)},upperdir=/mnt/upper,workdir=/mnt/work {root}
mount -t proc proc {root}/proc
mount --rbind /dev {root}/dev
mount -t tmpfs none {root}/dev/shm
mkdir -p {root}/usr/lib/cloche {root}/opt/agent "{root}/home/user/it's \\"quoted\\""
cp -r {shlex.quote(str(TOP / "kernels"))} {root}/usr/lib/cloche/
cp -r {shlex.quote(str(TOP / "sdk/charts/src/cloche_charts"))} {root}/usr/lib/cloche/kernels/python/cloche_kernel/charts
cp {shlex.quote(str(AGENT))} {root}/opt/agent/agent
exec chroot {root} /opt/agent/agent
"""
    port = free_port()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = dict(
        os.environ, CLOCHE_INTERP_PORT=str(port), CLOCHE_AGENT_PORT=str(free_port()), CLOCHE_QUEUE_MAX="20"
    )
    process = subprocess.Popen(
        ["unshare", "--kill-child=SIGKILL", "-mpf", "bash", "-c", f"exec 3<&{theirs.fileno()}\n" + script],
        env=environment,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    ours.send(boot_packet())
    one = Box(port, process)
    try:
        for _ in range(200):
            try:
                assert one.call("GET", "/health") == (200, b'"OK"')
                break
            except ConnectionRefusedError:
                time.sleep(0.05)  # between looks
        yield one
    finally:
        process.kill()
        process.wait()
        ours.close()


def agent_rss(box: Box) -> int:
    """Resident bytes of the agent: the child of the unshare that the fixture started."""
    pid = box.process.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    line = next(x for x in Path(f"/proc/{child}/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def test_default_contexts_are_listed_in_order(box: Box) -> None:
    assert [c["language"] for c in box.contexts()[:2]] == ["python", "javascript"]


def test_a_stream_has_exactly_the_lines_of_the_contract(box: Box) -> None:
    events = box.run('print("é"); 1+1', context_id=box.context())
    assert kinds(events) == ["number_of_executions", "stdout", "result", "end_of_execution"]
    assert events[0]["execution_count"] == 1
    assert events[1]["text"] == "é\n"
    assert events[1]["timestamp"].endswith("+00:00")
    assert events[2] == {"type": "result", "text": "2", "extra": {}, "is_main_result": True}


def test_every_byte_is_ascii_and_line_separators_are_escaped(box: Box) -> None:
    data = box.raw(code="print('\\u2028\\u0085\\U0001f600\\ud800')")
    assert max(data) < 0x80
    assert b"\\u2028\\u0085\\ud83d\\ude00\\ud800\\n" in data
    assert data.endswith(b'{"type":"end_of_execution"}\n')


def test_one_event_is_one_chunk(box: Box) -> None:
    body = json.dumps({"code": "print(1); 2"}).encode()
    with socket.create_connection(("127.0.0.1", box.port), timeout=30) as s:
        s.sendall(
            b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        )
        data = b""
        while piece := s.recv(65536):
            data += piece
    chunks = data.split(b"\r\n\r\n", 1)[1].split(b"\r\n")
    lines = chunks[1::2][:-1]
    assert len(lines) == 4
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)


def test_number_tokens_arrive_to_the_letter_and_nan_is_null(box: Box) -> None:
    data = box.raw(code="[100.0, 1e+22, 1234567890123456789, float('nan'), float('-inf')]")
    assert b'"json":[100.0,1e+22,1234567890123456789,null,null]' in data.replace(b", ", b",") or b"1e22" in data


def test_quotes_are_stripped_once(box: Box) -> None:
    assert box.text("'a\\nb'") == "a\\nb"
    assert box.text("''") == ""
    assert box.text("'\"'") == '"'


def test_output_keeps_the_order_it_was_written_in(box: Box) -> None:
    steps = [
        "print('p', i)",
        "os.write(1, b'w %d\\n' % i)",
        "os.system('echo c %d' % i)",
        "subprocess.run(['echo', 'd', str(i)])",
    ]
    body = "".join(f"\n {step}; time.sleep(0.01)" for step in steps)
    text = "".join(
        e["text"] for e in box.run("import os, subprocess, time\nfor i in range(10):" + body) if e["type"] == "stdout"
    )
    assert text == "".join(f"p {i}\nw {i}\nc {i}\nd {i}\n" for i in range(10))


def test_characters_cut_by_a_pipe_stay_whole(box: Box) -> None:
    code = "import os, time\nfor b in '€😀'.encode():\n os.write(1, bytes([b])); time.sleep(0.01)"
    assert "".join(e["text"] for e in box.run(code) if e["type"] == "stdout") == "€😀"


def test_ten_megabytes_of_prints_arrive_whole_in_bounded_pieces(box: Box) -> None:
    events = [e for e in box.run('for i in range(10240): print("x" * 1023)') if e["type"] == "stdout"]
    assert sum(len(e["text"]) for e in events) == 10 << 20
    assert max(len(e["text"]) for e in events) <= 64 << 10


def test_a_large_result_arrives_whole(box: Box) -> None:
    assert len(box.text("'é' * 5_000_000")) == 5_000_000


def test_the_head_of_the_answer_comes_before_the_cell_runs(box: Box) -> None:
    cid = box.context()
    first, _ = box.open("import time; time.sleep(1.5); x = 1", context_id=cid)
    began = time.monotonic()
    second, answer = box.open("x", context_id=cid)
    assert time.monotonic() - began < 0.7
    assert answer.status == 200
    assert b'"text":"1"' in answer.read()
    first.close()
    second.close()


def test_silence_is_filled_with_keepalives_queued_or_running(box: Box) -> None:
    cid = box.context()
    c1, running = box.open("import time; time.sleep(6)", context_id=cid)
    c2, queued = box.open("1", context_id=cid)
    for answer in (running, queued):
        assert "keepalive" in kinds([json.loads(x) for x in answer.read().splitlines()])
    c1.close()
    c2.close()


def test_a_client_that_leaves_interrupts_and_keeps_the_state(box: Box) -> None:
    cid = box.context()
    box.run("import time; kept = 7", context_id=cid)
    c, answer = box.open("print('go'); time.sleep(300)", context_id=cid)
    begun(answer)
    leave(c)
    began = time.monotonic()
    assert box.text("kept", context_id=cid) == "7"
    assert time.monotonic() - began < 3


UNREAD = "import time; time.sleep(0.3); print('unread', flush=True); time.sleep({seconds}); finished = 1"


def test_a_client_that_leaves_with_bytes_unread_interrupts_too(box: Box) -> None:
    cid = box.context()
    box.run("finished = 0", context_id=cid)
    c, _ = box.open(UNREAD.format(seconds=20), context_id=cid)
    time.sleep(0.7)  # until bytes wait that nobody reads
    leave(c)
    assert box.text("finished", context_id=cid) == "0"


def test_a_cell_whose_client_was_cut_off_runs_to_its_end(box: Box) -> None:
    cid = box.context()
    box.run("finished = 0", context_id=cid)
    c, _ = box.open(UNREAD.format(seconds=1), context_id=cid)
    time.sleep(0.7)  # until bytes wait that nobody reads
    cut_off(c)
    assert box.text("finished", context_id=cid) == "1"


def test_a_run_that_ignores_one_interrupt_is_interrupted_again(box: Box) -> None:
    cid = box.context()
    code = (
        "import time\nfor _ in range(2):\n try: print('go'); time.sleep(60)\n except KeyboardInterrupt: pass\ndone = 1"
    )
    c, answer = box.open(code, context_id=cid)
    begun(answer)
    leave(c)
    began = time.monotonic()
    assert box.text("done", context_id=cid) == "1"
    assert time.monotonic() - began < 8


def test_a_client_that_leaves_the_queue_is_never_run(box: Box) -> None:
    cid = box.context()
    c1, first = box.open("import time; time.sleep(1); ran = []", context_id=cid)
    c2, _ = box.open("ran.append(1)", context_id=cid)
    leave(c2)
    first.read()
    c1.close()
    assert box.text("ran", context_id=cid) == "[]"


def test_a_full_queue_is_refused(box: Box) -> None:
    cid = box.context()
    open_ones = [box.open("import time; time.sleep(2)", context_id=cid)[0] for _ in range(21)]
    status, data = box.call("POST", "/execute", {"code": "1", "context_id": cid})
    assert (status, b"Too many executions" in data) == (429, True)
    for c in open_ones:
        leave(c)
    box.call("DELETE", f"/contexts/{cid}")


def test_restart_ends_the_run_and_serves_the_queue_afterwards(box: Box) -> None:
    cid = box.context(cwd="/root")
    box.run("x = 1", context_id=cid)
    c1, running = box.open("import time; time.sleep(60)", context_id=cid)
    c2, queued = box.open("import os; os.getcwd(), 'x' in globals()", context_id=cid)
    assert box.call("POST", f"/contexts/{cid}/restart") == (200, b"null")
    e = error_of([json.loads(x) for x in running.read().splitlines()])
    assert e["name"] == "UnexpectedEndOfExecution"
    assert e["value"] == "Connection to the execution was closed before the execution was finished"
    events = [json.loads(x) for x in queued.read().splitlines()]
    assert events[0] == {"type": "number_of_executions", "execution_count": 1}
    assert events[1]["text"] == "('/root', False)"
    c1.close()
    c2.close()


def test_delete_ends_everything_and_forgets_the_id(box: Box) -> None:
    cid = box.context()
    c1, running = box.open("import time; time.sleep(60)", context_id=cid)
    c2, queued = box.open("1", context_id=cid)
    assert box.call("DELETE", f"/contexts/{cid}") == (200, b"null")
    for answer in (running, queued):
        assert error_of([json.loads(x) for x in answer.read().splitlines()])["name"] == "UnexpectedEndOfExecution"
    for method, path in (("DELETE", f"/contexts/{cid}"), ("POST", f"/contexts/{cid}/restart")):
        assert box.call(method, path) == (404, f"Context {cid} not found".encode())
    assert box.call("POST", "/execute", {"code": "1", "context_id": cid}) == (404, f"Context {cid} not found".encode())
    c1.close()
    c2.close()


def test_a_deleted_default_is_made_anew(box: Box) -> None:
    (old,) = [c["id"] for c in box.contexts() if c["language"] == "javascript"]
    box.run("var gone = 1", language="js")
    assert box.call("DELETE", f"/contexts/{old}")[0] == 200
    assert box.text("typeof gone", language="javascript") == "undefined"
    (new,) = [c["id"] for c in box.contexts() if c["language"] == "javascript"]
    assert new != old


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import os; os._exit(3)", "status 3"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    ],
)
def test_death_is_told_at_once_with_its_cause(box: Box, code: str, cause: str) -> None:
    cid = box.context(cwd="/root")
    began = time.monotonic()
    events = box.run("import time; time.sleep(0.2); " + code, context_id=cid)
    assert time.monotonic() - began < 2
    e = error_of(events)
    assert (e["name"], e["value"]) == ("ContextRestarting", "Context was restarted")
    assert cause in e["traceback"]
    assert box.text("import os; os.getcwd(), os.environ['TEST_ENV_VAR']", context_id=cid) == "('/root', 'supertest')"


def test_requests_queued_at_death_run_in_the_new_kernel(box: Box) -> None:
    cid = box.context()
    c1, _ = box.open("import time, os; time.sleep(0.5); os._exit(1)", context_id=cid)
    c2, queued = box.open("1 + 1", context_id=cid)
    assert b'"text":"2"' in queued.read()
    c1.close()
    c2.close()


def test_a_cell_after_exit_is_not_lost(box: Box) -> None:
    cid = box.context()
    box.run("exit()", context_id=cid)
    assert box.text("2 + 2", context_id=cid) == "4"


def test_variables_of_one_run_are_put_back(box: Box) -> None:
    get = "import os; os.environ.get('TEST_ENV_VAR'), os.environ.get('FOO')"
    odd = "q'\"\\\n€"
    assert box.text("import os; os.environ['FOO']", env_vars={"FOO": "bar"}) == "bar"
    assert box.text("os.environ['FOO'] == " + repr(odd), env_vars={"FOO": odd}) == "True"
    box.run("1/0", env_vars={"FOO": "bar", "TEST_ENV_VAR": "over"})
    assert box.text(get) == "('supertest', None)"


def test_a_context_starts_in_its_working_directory(box: Box) -> None:
    quoted = "/home/user/it's \"quoted\""
    assert (
        box.text("import os; print(os.getcwd()); os.getcwd() == " + repr(quoted), context_id=box.context(cwd=quoted))
        == "True"
    )
    assert box.text("import os; os.getcwd()", context_id=box.context(cwd="/root")) == "/root"
    before = box.contexts()
    assert box.call("POST", "/contexts", {"cwd": "/not/there"}) == (500, b"Failed to set working directory")
    assert box.contexts() == before


def test_the_newest_context_is_last_and_echoed(box: Box) -> None:
    status, data = box.call("POST", "/contexts", {"language": " PYTHON3 ", "cwd": "/root"})
    assert status == 200
    made = json.loads(data)
    assert (made["language"], made["cwd"]) == ("python", "/root")
    assert box.contexts()[-1] == made


def test_first_use_of_a_language_makes_one_context(box: Box) -> None:
    threads = [threading.Thread(target=box.run, args=("x=1",), kwargs={"language": "bash"}) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [c["language"] for c in box.contexts()].count("bash") == 1


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("bash", "echo $X; pwd", ["bar\n", "/home/user\n"]),
        ("js", "console.log(process.env.X); console.log(process.cwd())", ["bar\n", "/home/user\n"]),
        ("ts", "const x: string = process.env.X!; console.log(x)", ["bar\n"]),
        ("R", "cat(Sys.getenv('X'))", ["bar"]),
        ("java", 'System.out.println(System.getProperty("X"))', ["bar", "\n"]),
    ],
)
def test_other_languages_stream_to_the_letter(box: Box, language: str, code: str, expected: list[str]) -> None:
    events = box.run(code, language=language, env_vars={"X": "bar"})
    assert [e["text"] for e in events if e["type"] == "stdout"] == expected


@pytest.mark.parametrize(
    ("language", "keep", "forever", "ask", "kept"),
    [
        ("js", "var kept = 7", "for (;;) {}", "console.log(kept)", "7"),
        ("js", "var kept = 8", "await new Promise(() => {})", "console.log(kept)", "8"),
        ("bash", "kept=7", "sleep 300", "echo $kept", "7"),
        ("r", "kept <- 7", "repeat Sys.sleep(0.1)", "cat(kept)", "7"),
        ("java", "int kept = 7;", "while (true) { Thread.sleep(50); }", "System.out.println(kept);", "7"),
    ],
)
def test_an_abandoned_cell_is_interrupted_in_every_language(
    box: Box, language: str, keep: str, forever: str, ask: str, kept: str
) -> None:
    cid = box.context(language=language)
    box.run(keep, context_id=cid)
    c, _ = box.open(forever, context_id=cid)
    time.sleep(0.7)  # a moment inside the cell, which says nothing
    leave(c)
    began = time.monotonic()
    text = "".join(e["text"] for e in box.run(ask, context_id=cid) if e["type"] == "stdout")
    assert text.strip() == kept
    assert time.monotonic() - began < 10
    box.call("DELETE", f"/contexts/{cid}")


@pytest.mark.parametrize(
    ("language", "code", "ask", "answer"),
    [
        ("js", "process.exit(4)", "console.log(1 + 1)", "2"),
        ("r", "quit(status = 4)", "cat(1 + 1)", "2"),
        ("java", "System.exit(4);", "System.out.println(1 + 1);", "2"),
    ],
)
def test_a_kernel_that_exits_is_replaced_in_every_language(
    box: Box, language: str, code: str, ask: str, answer: str
) -> None:
    cid = box.context(language=language)
    assert error_of(box.run(code, context_id=cid))["name"] == "ContextRestarting"
    text = "".join(e["text"] for e in box.run(ask, context_id=cid) if e["type"] == "stdout")
    assert text.strip() == answer
    box.call("DELETE", f"/contexts/{cid}")


def test_a_missing_language_says_so(box: Box) -> None:
    status, data = box.call("POST", "/execute", {"code": "1", "language": "cobol"})
    assert status == 500
    assert data.startswith(b"Failed to create context: ")
    assert json.loads(data.split(b": ", 1)[1])["short_message"] == "cobol not found"


@pytest.mark.parametrize(
    ("body", "kind", "loc"),
    [
        ("{}", "missing", ["body", "code"]),
        ('{"code":1}', "string_type", ["body", "code"]),
        ('{"code":"1","env_vars":{"A":1}}', "string_type", ["body", "env_vars", "A"]),
        ('{"code":"1","language":5}', "string_type", ["body", "language"]),
        ("", "missing", ["body"]),
        ("[]", "model_attributes_type", ["body"]),
    ],
)
def test_wrong_bodies_are_422(box: Box, body: str, kind: str, loc: list[str]) -> None:
    status, data = box.call("POST", "/execute", body)
    (fault,) = json.loads(data)["detail"]
    assert (status, fault["type"], fault["loc"]) == (422, kind, loc)


def test_bad_json_is_422_with_its_place(box: Box) -> None:
    status, data = box.call("POST", "/execute", '{"code": nope}')
    (fault,) = json.loads(data)["detail"]
    assert (status, fault["type"], fault["loc"][0], fault["msg"]) == (422, "json_invalid", "body", "JSON decode error")


def test_both_selectors_are_refused_and_empty_ones_are_none(box: Box) -> None:
    assert box.call("POST", "/execute", {"code": "1", "language": "python", "context_id": "x"}) == (
        400,
        b"Only one of context_id or language can be provided",
    )
    assert box.text("1", language="", context_id=None) == "1"


def test_unknown_paths_and_methods(box: Box) -> None:
    assert box.call("GET", "/nothing") == (404, b'{"detail":"Not Found"}')
    assert box.call("GET", "/execute") == (405, b'{"detail":"Method Not Allowed"}')
    assert box.call("POST", "/contexts", None)[0] == 422


def test_a_browsers_cross_origin_request_is_allowed(box: Box) -> None:
    c = box.connect()
    ask = {"Origin": "http://a", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}
    c.request("OPTIONS", "/execute", headers=ask)
    r = c.getresponse()
    assert (r.status, r.read(), r.headers["access-control-allow-headers"]) == (200, b"OK", "x-a")
    c.request("GET", "/contexts", headers={"Origin": "http://a"})
    r = c.getresponse()
    assert r.headers["access-control-allow-origin"] == "*"
    r.read()
    c.close()


def test_a_slow_reader_holds_back_its_own_kernel_only(box: Box) -> None:
    cid = box.context()
    before = agent_rss(box)
    c, slow = box.open("print('y' * 1000 * 100_000, end='')\nfor _ in range(100_000): print('y' * 999)", context_id=cid)
    began = time.monotonic()
    for _ in range(20):
        assert box.text("1+1") == "2"
    assert time.monotonic() - began < 2
    time.sleep(1)  # its memory has this long to grow
    assert agent_rss(box) - before < 400 << 20
    total = sum(len(json.loads(x).get("text", "")) for x in slow.read().splitlines() if b'"stdout"' in x)
    assert total == 200_000_000
    c.close()


def test_a_foreign_jupyter_kernel_is_driven_over_zeromq(box: Box) -> None:
    foreign = {"language": "jupyter:python3"}
    events = box.run('print("é"); 1+1', **foreign)
    assert kinds(events) == ["number_of_executions", "stdout", "result", "end_of_execution"]
    assert error_of(box.run("%nomagic", **foreign))["name"] == "UsageError"
    assert (
        box.text("import os; os.environ['FOO'], os.environ['TEST_ENV_VAR']", env_vars={"FOO": "b'r"}, **foreign)
        == "(\"b'r\", 'supertest')"
    )
    assert box.text("os.environ.get('FOO', 'default')", **foreign) == "default"
    c, answer = box.open("import time; print('go'); time.sleep(300)", **foreign)
    begun(answer)
    leave(c)
    assert box.text("1 + 2", **foreign) == "3"
    c, answer = box.open("import time; print('go'); time.sleep(300)", **foreign)
    begun(answer)
    assert box.call("POST", "/interrupt", foreign) == (200, b'{"interrupted":true}')
    assert error_of([json.loads(line) for line in answer.read().splitlines()])["name"] == "KeyboardInterrupt"
    c.close()
    assert error_of(box.run("import os; os._exit(5)", **foreign))["name"] == "ContextRestarting"
    assert box.text("3", **foreign) == "3"
