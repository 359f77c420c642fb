# SPDX-License-Identifier: Apache-2.0
"""https with a private authority.

The stock SDK on one name (recipe C), the names of boxes, and what TLS itself must do.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.tls import Relay, Tls
from support.waiting import eventually
from support.wire import RawBox, Wire

AT_ONCE = 40

SERVICE = """
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"inside {self.path} {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
if CERT:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/tmp/c.pem", "/tmp/k.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def tls() -> Tls:
    return Tls()


@pytest.fixture(scope="module")
def secure_box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=300, network={"httpsPorts": [8443]})
    yield made
    made.kill()


def client(tls: Tls, **options: object) -> httpx.Client:
    return httpx.Client(verify=tls.context(), timeout=60, **options)  # type: ignore[arg-type]


def in_box(box: RawBox, name: str, code: str) -> None:
    """Starts a Python program in the box and leaves it running."""
    path = f"/tmp/{name}.py"
    started = f"cat >{path} <<'END'\n{code}\nEND\nnohup python3 {path} >/dev/null 2>&1 &"
    assert box.run(started)[0] == 0


def host_of(box: RawBox, port: int) -> str:
    return f"{port}-{box.id}.box.test"


@pytest.mark.timeout(180)
def test_the_stock_sdk_works_over_one_name_and_few_connections(tls: Tls) -> None:
    with Relay(tls.port) as relay:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("stock.py"))],
            env=tls.environment(relay.port),
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        # 40 streams at once, uploads and API calls: over HTTP/1.1 each stream
        # would need a connection of its own.
        assert relay.accepted < AT_ONCE / 2, relay.accepted
    assert seen["sum"] == ["42\n"]
    assert seen["lines"] == ["1", "2", "3"]
    assert seen["spread"] > 0.6
    assert seen["many"] == list(range(AT_ONCE))
    assert seen["uploaded"]
    assert seen["downloaded"]
    assert seen["killed"]
    assert seen["error"] == "SandboxNotRunningException"
    assert seen["noticed"] < 30
    assert not seen["running"]


def test_both_protocols_are_negotiated(tls: Tls) -> None:
    for http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
        with client(tls, http2=http2) as web:
            answer = web.get(f"{tls.url}/health")
            assert answer.status_code == 200
            assert answer.http_version == version


def test_an_unknown_authority_and_a_foreign_name_are_refused(tls: Tls) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{tls.url}/health")
    with pytest.raises(ssl.SSLCertVerificationError):
        tls.connect("box.example")


def test_old_tls_is_refused(tls: Tls) -> None:
    context = tls.context()
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", tls.port)) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


def test_errors_of_the_api_keep_their_shape(tls: Tls) -> None:
    with client(tls, http2=True) as web:
        key = {"X-API-KEY": os.environ["E2B_API_KEY"]}
        answer = web.get(f"{tls.url}/sandboxes/none", headers=key)
        assert answer.http_version == "HTTP/2"
        assert (answer.status_code, answer.json()["code"]) == (404, 404)
        assert web.get(f"{tls.url}/sandboxes").status_code == 401


def test_the_host_name_leads_into_the_box(tls: Tls, secure_box: RawBox) -> None:
    """Recipe B as far as it goes without a resolver: name in SNI and :authority, address given."""
    in_box(secure_box, "plain", f"PORT, CERT = 8080, False\n{SERVICE}")
    host = host_of(secure_box, 8080)
    with client(tls, http2=True) as web:

        def served() -> httpx.Response | None:
            got = web.get(
                f"https://127.0.0.1:{tls.port}/path?q=1",
                headers={"Host": f"{host}:{tls.port}"},
                extensions={"sni_hostname": host},
            )
            return got if got.status_code == 200 else None

        answer = eventually(served)
        assert answer.http_version == "HTTP/2"
        assert answer.text == f"inside /path?q=1 {host}:{tls.port}"
    with tls.connect(host, "http/1.1") as raw:
        raw.sendall(f"GET /one HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer1 = http.client.HTTPResponse(raw)
        answer1.begin()
        assert answer1.read() == f"inside /one {host}".encode()


def test_a_service_that_speaks_tls_is_reached(tls: Tls, secure_box: RawBox) -> None:
    made = secure_box.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        " -keyout /tmp/k.pem -out /tmp/c.pem -days 2 -subj /CN=inside"
    )
    assert made[0] == 0, made
    in_box(secure_box, "tls", f"PORT, CERT = 8443, True\n{SERVICE}")
    with client(tls, http2=True) as web:

        def served() -> httpx.Response | None:
            got = web.get(
                f"{tls.url}/deep",
                headers={"E2b-Sandbox-Id": secure_box.id, "E2b-Sandbox-Port": "8443"},
            )
            return got if got.status_code == 200 else None

        answer = eventually(served)
        assert answer.text.startswith("inside /deep")


def test_an_upgraded_connection_is_a_tunnel(tls: Tls, secure_box: RawBox) -> None:
    in_box(
        secure_box,
        "echo",
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 8090))\n"
        "open('/tmp/listens', 'w').close()\n"
        "c, _ = s.accept()\n"
        "while b'\\r\\n\\r\\n' not in c.recv(65536): pass\n"
        "c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\n')\n"
        "c.sendall(b'Upgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n')\n"
        "while d := c.recv(65536): c.sendall(d.upper())\n"
        "c.sendall(b'BYE')\n",
    )
    eventually(lambda: secure_box.run("test -e /tmp/listens")[0] == 0)
    host = host_of(secure_box, 8090)
    with tls.connect(host, "http/1.1") as raw:
        asked = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
        raw.sendall(asked.encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += raw.recv(1)
        assert head.startswith(b"HTTP/1.1 101")
        raw.sendall(b"hello")
        assert raw.recv(100) == b"HELLO"
        raw.sendall(b"again")
        assert raw.recv(100) == b"AGAIN"


def serial(tls: Tls) -> str:
    with tls.connect("localhost") as raw:
        certificate = raw.getpeercert()
        assert certificate
        return str(certificate["serialNumber"])


def test_a_renewed_certificate_is_taken_up_and_nobody_is_dropped(tls: Tls) -> None:
    before = serial(tls)
    with client(tls, http2=True) as web:
        old = web.get(f"{tls.url}/health")
        assert old.status_code == 200
        subprocess.run(
            [os.environ["CLOCHE_BIN"], "tls", "init", "--dir", str(tls.dir)],
            check=True,
            capture_output=True,
        )
        eventually(lambda: serial(tls) != before)
        stream = old.extensions["network_stream"].get_extra_info("ssl_object")
        again = web.get(f"{tls.url}/health")
        assert again.status_code == 200
        # The same connection as before, not a new one.
        assert again.extensions["network_stream"].get_extra_info("ssl_object") is stream


def test_a_session_is_resumed_whichever_gate_answers(tls: Tls) -> None:
    context = tls.context("http/1.1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session: ssl.SSLSession | None = None
    for turn in range(12):
        plain = socket.create_connection(("127.0.0.1", tls.port), timeout=30)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = http.client.HTTPResponse(raw)
            answer.begin()
            answer.read()
            assert turn == 0 or raw.session_reused
            session = session or raw.session
