# SPDX-License-Identifier: Apache-2.0
"""A kernel that lies to its agent: user code is the kernel's own process and may write anything into its line, and
anybody may install a Jupyter kernel. The agent goes on, other contexts of the box work, the other team notices
nothing."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from support.tenants import Tenants, slowest_answer
from support.wire import INTERPRETER_PORT, RawBox

CALM = 3.0

# Into every stream socket the kernel's process has; SAY is what is written.
LIAR = """
import os, socket, stat
def lines():
    for name in os.listdir('/proc/self/fd'):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield socket.socket(fileno=os.dup(int(name)))
        except OSError:
            pass
for line in list(lines()):
    open('/tmp/said', 'a').write('x')
    try:
        line.settimeout(3)
        SAY
    except (OSError, ValueError):
        pass
"""

LIES = {
    "noise": "line.sendall(os.urandom(1 << 20))",
    "a line without an end": "[line.sendall(b'a' * (1 << 20)) for _ in range(64)]",
    "depth": "line.sendall(b'[' * 300000 + b'\\n')",
    "runs that are not": 'line.sendall(b\'\'.join(b\'{"ev":"done","id":%d,'
    '"status":7}\\n{"ev":"stream","id":%d,"name":3,"text":[]}\\n\''
    " % (i, -i) for i in range(-20000, 20000)))",
    "a flood of output": (
        '[line.sendall(b\'{"ev":"stream","id":%d,"name":"stdout","text":"%s"}\\n\' % (i % '
        "9, b'x' * 60000)) for i in range(600)]"
    ),
    "descriptors": "[socket.send_fds(line, [b'{}\\n'], [0] * 200) for _ in range(20)]",
    "a second ready": 'line.sendall(b\'{"ev":"ready","pid":1,"interrupt":"message","coalesce":7}\\n\' * 1000)',
    "a closed line": "line.shutdown(2)",
}

JUPYTER = """
import json, os, socket, sys, threading, time
mode, ports = sys.argv[1], json.load(open(sys.argv[2]))
open('/tmp/liar-' + mode, 'w').close()
def talk(c):
    try:
        c.settimeout(20)
        if mode == 'noise':
            c.sendall(os.urandom(1 << 20))
        elif mode == 'greeting':
            greeting = b'\\xff' + b'\\0' * 8 + b'\\x7f\\x03\\x00NULL' + b'\\0' * 48
            c.sendall(greeting + b'\\x06' + b'\\xff' * 8 + b'x' * 65536)
        elif mode == 'frames':
            c.sendall(b'\\xff' + b'\\0' * 8 + b'\\x7f\\x03\\x00NULL' + b'\\0' * 48)
            c.sendall(b'\\x04\\x1a\\x05READY\\x0bSocket-Type\\0\\0\\0\\x03PUB')
            c.sendall((b'\\x01' + b'\\x05' + b'aaaaa') * 200000)
        time.sleep(30)
    except OSError:
        pass
def serve(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', port))
    s.listen(16)
    while True:
        threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
if mode == 'dies':
    sys.exit(3)
for name, port in ports.items():
    if name.endswith('_port'):
        threading.Thread(target=serve, args=(port,), daemon=True).start()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def box(tenants: Tenants) -> Iterator[RawBox]:
    made = tenants.attacker.create("code-interpreter-v1", timeout=600)
    yield made
    made.kill()


def ask(box: RawBox, path: str, body: object, seconds: float) -> bytes:
    """What the client is told, if anything, within a time."""
    try:
        return box.port(INTERPRETER_PORT, "POST", path, body, {"X-Access-Token": box.token}, timeout=seconds).body
    except (TimeoutError, ConnectionError, http.client.HTTPException):
        return b""


def check_the_rest(tenants: Tenants, box: RawBox) -> None:
    assert box.agent("GET", "/health").status == 204
    assert box.agent("GET", "/metrics").status == 200
    told = ask(box, "/contexts", {"language": "python"}, 60)
    context = json.loads(told)["id"]
    events = box.execute("print(6 * 7)", context_id=context)
    assert any(event.get("text") == "42\n" for event in events), events
    assert slowest_answer(tenants.victim, 0.5, "/health") < CALM


@pytest.mark.parametrize("lie", LIES)
def test_a_cell_that_writes_into_its_kernels_line_harms_its_context_only(
    tenants: Tenants, box: RawBox, lie: str
) -> None:
    pid1 = box.run("cut -d' ' -f22 /proc/1/stat", user="root")[1].strip()
    context = json.loads(ask(box, "/contexts", {"language": "python"}, 60))["id"]
    told = ask(box, "/execute", {"code": LIAR.replace("SAY", LIES[lie]), "context_id": context}, 20)
    assert box.run("cat /tmp/said; rm -f /tmp/said", user="root")[1], "there was no line to lie into"
    for line in told.decode("ascii").splitlines():
        assert isinstance(json.loads(line), dict), line[:200]
    check_the_rest(tenants, box)
    assert box.run("cut -d' ' -f22 /proc/1/stat", user="root")[1].strip() == pid1


@pytest.mark.parametrize("mode", ["noise", "greeting", "frames", "mute", "dies"])
def test_a_jupyter_kernel_that_breaks_its_protocol_is_given_up(tenants: Tenants, box: RawBox, mode: str) -> None:
    folder = f"/usr/local/share/jupyter/kernels/liar-{mode}"
    spec = {
        "argv": ["/usr/bin/python3", "/tmp/liar.py", mode, "{connection_file}"],
        "language": f"liar{mode}",
        "display_name": "x",
    }
    made = box.run(f"mkdir -p {folder} && cat > {folder}/kernel.json <<'END'\n{json.dumps(spec)}\nEND", user="root")
    assert made[0] == 0, made
    assert box.run(f"cat > /tmp/liar.py <<'END'\n{JUPYTER}\nEND", user="root")[0] == 0
    told = ask(box, "/execute", {"code": "1", "language": f"liar{mode}"}, 10)
    assert box.run(f"ls /tmp/liar-{mode}", user="root")[0] == 0, ("the kernel was not started", told)
    check_the_rest(tenants, box)
