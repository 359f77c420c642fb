# SPDX-License-Identifier: Apache-2.0
"""`cloche port`: a port of a sandbox at a local address."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import e2b_code_interpreter as interpreter
import pytest

from cli.conftest import CLOCHE, Cloche
from support.waiting import eventually

ECHO = """
import socketserver
class H(socketserver.BaseRequestHandler):
    def handle(self):
        data = b""
        while piece := self.request.recv(65536):
            data += piece
        self.request.sendall(data[::-1])
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
S(("127.0.0.1", 7070), H).serve_forever()
"""


@pytest.fixture(scope="module")
def serving(box: interpreter.Sandbox) -> interpreter.Sandbox:
    box.files.write("/tmp/echo.py", ECHO)
    box.files.write("/tmp/www/big", b"0123456789abcdef" * 500_000)
    box.commands.run("python3 /tmp/echo.py", background=True)
    box.commands.run("python3 -m http.server 7071 -d /tmp/www", background=True)
    eventually(
        lambda: box.commands.run("ss -tln | grep -c ':707[01] ' || true").stdout.strip() == "2", 30
    )
    return box


@contextmanager
def forwarded(box: str, port: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    command = [CLOCHE, "port", "--json", box, port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["port"], process
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


def reversed_by(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while piece := s.recv(65536):
            got += piece
    return got


def test_any_protocol_passes_whole_both_ways_and_many_at_once(serving: interpreter.Sandbox) -> None:
    words = [os.urandom(1000 * (i + 1)) for i in range(8)]
    with forwarded(serving.sandbox_id, "0:7070") as (port, _), concurrent.futures.ThreadPoolExecutor(8) as many:
        assert list(many.map(lambda w: reversed_by(port, w), words)) == [w[::-1] for w in words]


def test_a_page_of_a_sandbox_is_read_at_the_local_address(serving: interpreter.Sandbox) -> None:
    with forwarded(serving.sandbox_id, "0:7071") as (port, _):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/big", timeout=60) as answer:
            assert answer.read() == b"0123456789abcdef" * 500_000


def test_a_port_where_nothing_listens_is_named(serving: interpreter.Sandbox) -> None:
    with forwarded(serving.sandbox_id, "0:7079") as (port, process):
        with socket.create_connection(("127.0.0.1", port), 30) as s:
            assert s.recv(1) == b""
        assert process.stderr
        assert b"nothing listens on port 7079" in process.stderr.readline()


def test_no_command_is_left_in_the_sandbox(serving: interpreter.Sandbox) -> None:
    with forwarded(serving.sandbox_id, "0:7070") as (port, _):
        reversed_by(port, b"x")
        idle = socket.create_connection(("127.0.0.1", port), 30)
        idle.sendall(b"never ends")
        idle.close()
    eventually(
        lambda: serving.commands.run("pgrep -fc 'create_connectio[n]' || true").stdout.strip() == "0", 30
    )


def test_what_cannot_be_is_told(cloche: Cloche, serving: interpreter.Sandbox) -> None:
    for word in ("0", "70000", "a:7070", "1:2:3"):
        wrong = cloche("port", serving.sandbox_id, word)
        assert (wrong.returncode, word.encode() in wrong.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        busy = cloche("port", serving.sandbox_id, f"{number}:7070")
        assert (busy.returncode, str(number).encode() in busy.stderr) == (1, True)
