# SPDX-License-Identifier: Apache-2.0
"""The edge: how a request finds a port in a box, and what it gets when there is none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
import websockets

from support.either import until
from support.waiting import eventually
from support.wire import AGENT_PORT, RawBox, Wire

SERVER = r"""
import http.server, json, os, sys, time
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_GET(self):
        if self.path == "/slow":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for n in range(3):
                self.wfile.write(b"2\r\n%d\n\r\n" % n); self.wfile.flush()
                while not os.path.exists("/tmp/heard"):
                    time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
            return
        if self.path == "/forever":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"2\r\nx\n\r\n"); self.wfile.flush(); time.sleep(0.1)
            except OSError:
                open("/tmp/client-gone", "w").close()
            return
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        told = json.dumps({"method": self.command, "path": self.path, "size": size,
                           "headers": dict(self.headers.items()),
                           "body": body[:100].decode("latin-1")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.send_header("X-From", "the box")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)
    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
"""

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/130.0", "Accept": "text/html"}


def serve(box: RawBox, address: str, port: int) -> None:
    box.agent(
        "POST",
        "/files?path=/tmp/echo.py",
        SERVER.encode(),
        {"Content-Type": "application/octet-stream"},
    )
    command = f"setsid python3 /tmp/echo.py {address} {port} >/dev/null 2>&1 </dev/null &"
    assert box.run(command)[0] == 0


@pytest.fixture(scope="module")
def served(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=300)
    serve(box, "127.0.0.1", 8000)
    serve(box, "0.0.0.0", 8001)
    eventually(lambda: box.port(8000).status == 200 and box.port(8001).status == 200)
    yield box
    box.kill()


def host(port: int, box: RawBox, tail: str = ".localhost:80") -> dict[str, str]:
    return {"Host": f"{port}-{box.id}{tail}"}


def test_a_request_is_routed_by_its_headers(served: RawBox) -> None:
    told = served.port(8000, "GET", "/a/b?c=%2Fd").json()
    assert (told["method"], told["path"]) == ("GET", "/a/b?c=%2Fd")
    assert served.port(8001).status == 200


@pytest.mark.parametrize(
    "tail", [".localhost", ".localhost:3000", ".box.test", "-6532622b.box.test"]
)
def test_a_request_is_routed_by_its_host(wire: Wire, served: RawBox, tail: str) -> None:
    got = wire.call("GET", "/x", headers=host(8000, served, tail), with_key=False)
    assert got.status == 200
    assert got.json()["headers"]["Host"] == f"8000-{served.id}{tail}"


def test_only_one_routing_header_is_a_mistake(wire: Wire, served: RawBox) -> None:
    got = wire.call("GET", "/", headers={"E2b-Sandbox-Id": served.id}, with_key=False)
    assert got.status == 400
    got = wire.call("GET", "/", headers={"E2b-Sandbox-Port": "8000"}, with_key=False)
    assert got.status == 400
    for port in ("x", "-1", "70000", ""):
        odd = {"E2b-Sandbox-Id": served.id, "E2b-Sandbox-Port": port}
        assert wire.call("GET", "/", headers=odd, with_key=False).status == 400


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_and_body_passes(served: RawBox, method: str) -> None:
    told = served.port(8000, method, "/m", b"payload" if method != "GET" else None).json()
    assert told["method"] == method
    if method != "GET":
        assert told["body"] == "payload"


def test_head_has_no_body(served: RawBox) -> None:
    got = served.port(8000, "HEAD", "/")
    assert (got.status, got.body) == (200, b"")
    assert got.headers["X-From"] == "the box"


def test_headers_are_passed_but_not_forwarding_ones(served: RawBox) -> None:
    sent = {"X-Mine": "yes", "X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4"}
    headers = {k.lower(): v for k, v in served.port(8000, headers=sent).json()["headers"].items()}
    assert headers["x-mine"] == "yes"
    assert "x-forwarded-for" not in headers
    assert "forwarded" not in headers
    assert "x-api-key" not in headers


def test_large_bodies_pass_whole(served: RawBox) -> None:
    got = served.port(8000, "POST", "/", b"z" * 5_000_000)
    assert got.json()["size"] == 5_000_000


def test_chunks_arrive_as_they_are_sent(served: RawBox) -> None:
    connection = served.wire.connect()
    connection.request("GET", "/slow", headers=served.routing(8000))
    response = connection.getresponse()
    assert response.readline() == b"0\n"
    assert served.run("touch /tmp/heard")[0] == 0
    assert response.read() == b"1\n2\n"
    connection.close()


def test_a_client_that_leaves_is_noticed_inside(served: RawBox) -> None:
    connection = served.wire.connect()
    connection.request("GET", "/forever", headers=served.routing(8000))
    connection.getresponse().readline()
    connection.close()
    script = "for n in $(seq 50); do test -e /tmp/client-gone && exit; sleep 0.1; done; exit 1"
    assert served.run(script)[0] == 0


def test_an_unknown_box_is_502(wire: Wire) -> None:
    ghost = RawBox(wire, {"sandboxID": "inonexistent00000000x"})
    for port in (8000, AGENT_PORT):
        got = ghost.port(port)
        assert got.status == 502
        assert got.headers["Content-Type"] == "application/json; charset=utf-8"
        body = got.json()
        assert body["sandboxId"] == ghost.id
        assert body["code"] == 502
        assert body["message"].startswith("The sandbox was not found")


def test_the_message_for_an_unknown_box_is_exact(wire: Wire) -> None:
    ghost = RawBox(wire, {"sandboxID": "inonexistent00000000x"})
    assert ghost.port(8000).json()["message"] == "The sandbox was not found"


def test_a_closed_port_is_502_with_the_port(served: RawBox) -> None:
    got = served.port(4567)
    assert got.status == 502
    assert got.json() == {
        "sandboxId": served.id,
        "message": "The sandbox is running but port is not open",
        "port": 4567,
        "code": 502,
    }


def test_a_browser_gets_an_error_page_and_others_json(wire: Wire, served: RawBox) -> None:
    got = served.port(4567, headers=BROWSER)
    assert got.status == 502
    assert got.headers["Content-Type"] == "text/html; charset=utf-8"
    page = got.text.strip()
    assert page.startswith("<html")
    assert page.endswith("</html>")
    assert "no service running on port" in page
    assert served.id in page
    assert "4567" in page
    ghost = RawBox(wire, {"sandboxID": "inonexistent00000000x"})
    page = ghost.port(8000, headers=BROWSER).text
    assert "Sandbox Not Found" in page
    assert ghost.id in page


@pytest.mark.parametrize(
    "headers, html",
    [
        ({"User-Agent": "curl/8"}, False),
        ({"User-Agent": "Mozilla/5.0", "Accept": "application/json"}, False),
        ({"User-Agent": "Mozilla/5.0", "Accept": "text/html,application/json"}, True),
        ({"User-Agent": "Mozilla/5.0", "Sec-Fetch-Mode": "cors"}, False),
        ({"User-Agent": "Mozilla/5.0", "Sec-Fetch-Mode": "navigate"}, True),
        ({"User-Agent": "Mozilla/5.0", "X-Requested-With": "XMLHttpRequest"}, False),
        ({"User-Agent": "Mozilla/5.0", "X-Requested-With": "x", "Sec-Fetch-Mode": "navigate"},
         True),
        ({"User-Agent": "some SAFARI thing"}, True),
    ],
)  # fmt: skip
def test_who_is_a_browser(served: RawBox, headers: dict[str, str], html: bool) -> None:
    kind = served.port(4567, headers=headers).headers["Content-Type"]
    assert kind.startswith("text/html") is html


def test_a_page_shows_no_markup_of_the_caller(wire: Wire) -> None:
    odd = {"E2b-Sandbox-Id": "<script>x</script>", "E2b-Sandbox-Port": "80"} | BROWSER
    got = wire.call("GET", "/", headers=odd, with_key=False)
    assert got.status in (400, 502)
    assert b"<script>" not in got.body


def test_a_service_that_starts_late_is_waited_for(served: RawBox) -> None:
    """Not for ever: where Python takes long to start, another gets a chance."""
    for port in range(8055, 8065):
        timer = threading.Timer(0.3, serve, (served, "127.0.0.1", port))
        timer.start()
        got = served.port(port)
        timer.join()
        if got.status == 200:
            break
    assert got.status == 200


def test_ipv6_loopback_is_reached_too(served: RawBox) -> None:
    command = "setsid python3 -m http.server 8066 --bind ::1 >/dev/null 2>&1 </dev/null &"
    assert served.run(command, cwd="/tmp")[0] == 0
    eventually(lambda: served.port(8066).status == 200)


WEBSOCKET = r"""
import base64, hashlib, socket, struct
listener = socket.create_server(("127.0.0.1", 8100))
while True:
    link, _ = listener.accept()
    head = b""
    while b"\r\n\r\n" not in head:
        head += link.recv(4096)
    key = [l.split(b": ", 1)[1] for l in head.split(b"\r\n")
           if l.lower().startswith(b"sec-websocket-key")][0]
    magic = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key + magic).digest())
    link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while True:
        frame = link.recv(2)
        if len(frame) < 2 or frame[0] & 15 == 8:
            break
        size = frame[1] & 127
        if size == 126:
            size = struct.unpack(">H", link.recv(2))[0]
        mask = link.recv(4)
        data = b""
        while len(data) < size:
            data += link.recv(size - len(data))
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data)).upper()
        length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
        link.sendall(b"\x81" + length + data)
    link.close()
"""


async def test_websockets_pass_both_ways(wire: Wire, served: RawBox) -> None:
    served.agent(
        "POST", "/files?path=/tmp/ws.py", WEBSOCKET.encode(),
        {"Content-Type": "application/octet-stream"},
    )  # fmt: skip
    served.run("setsid python3 /tmp/ws.py >/dev/null 2>&1 </dev/null &")
    url = wire.url.replace("http", "ws", 1) + "/socket"

    async def connected() -> websockets.ClientConnection | None:
        try:
            return await websockets.connect(
                url, additional_headers=served.routing(8100), compression=None, proxy=None
            )
        except (OSError, websockets.InvalidStatus):
            return None

    async with await until(connected) as link:
        for text in ("hello", "x" * 5000, "bye"):
            await link.send(text)
            assert await link.recv() == text.upper()


def test_a_kill_cuts_open_streams_without_a_clean_end(wire: Wire) -> None:
    box = wire.create(timeout=60)
    message = {"process": {"cmd": "/bin/bash", "args": ["-c", "sleep 30"]}, "stdin": False}
    body = json.dumps(message).encode()
    frame = b"\0" + len(body).to_bytes(4, "big") + body
    head = "POST /process.Process/Start HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    sent = box.headers() | {
        "Content-Type": "application/connect+json",
        "Connect-Protocol-Version": "1",
        "Content-Length": str(len(frame)),
    }
    head += "".join(f"{name}: {value}\r\n" for name, value in sent.items()) + "\r\n"
    with wire.open() as link:
        link.sendall(head.encode() + frame)
        seen = link.recv(65536)
        assert seen.startswith(b"HTTP/1.1 200")
        box.kill()
        try:
            while part := link.recv(65536):
                seen += part
        except ConnectionResetError:
            pass
    assert b'"start"' in seen
    assert not seen.endswith(b"0\r\n\r\n")
    assert box.agent("GET", "/health").status == 502


class TestTrafficToken:
    @pytest.fixture(scope="class")
    def closed(self, wire: Wire) -> Iterator[RawBox]:
        box = wire.create(timeout=120, network={"allowPublicTraffic": False})
        serve(box, "127.0.0.1", 8000)
        token = {"E2B-Traffic-Access-Token": box.made["trafficAccessToken"]}
        eventually(lambda: box.port(8000, headers=token).status == 200)
        yield box
        box.kill()

    def test_the_token_opens_and_its_absence_closes(self, closed: RawBox) -> None:
        token = closed.made["trafficAccessToken"]
        assert closed.port(8000, headers={"E2B-Traffic-Access-Token": token}).status == 200
        for headers, words in [
            ({}, "Token header 'e2b-traffic-access-token' is missing"),
            ({"E2B-Traffic-Access-Token": "wrong"},
             "Provided token in header 'e2b-traffic-access-token' is invalid"),
        ]:  # fmt: skip
            got = closed.port(8000, headers=headers)
            assert got.status == 403
            assert got.json() == {
                "sandboxId": closed.id,
                "message": f"Sandbox is secured with traffic access token. {words}",
                "code": 403,
            }
        page = closed.port(8000, headers=BROWSER).text
        assert "Missing Traffic Access Token" in page

    def test_the_agent_port_is_not_concerned(self, closed: RawBox) -> None:
        assert closed.port(AGENT_PORT, "GET", "/health").status == 204

    def test_another_boxs_token_is_wrong(self, wire: Wire, closed: RawBox) -> None:
        other = wire.create(timeout=60, network={"allowPublicTraffic": False})
        try:
            token = other.made["trafficAccessToken"]
            assert token != closed.made["trafficAccessToken"]
            assert closed.port(8000, headers={"E2B-Traffic-Access-Token": token}).status == 403
            got = closed.agent(
                "POST",
                "/process.Process/List",
                b"{}",
                {"X-Access-Token": other.token, "Content-Type": "application/json"},
            )
            assert got.status == 401
        finally:
            other.kill()


def test_the_path_routes_for_people(wire: Wire, served: RawBox) -> None:
    base = f"/box/{served.id}/8000"
    for tail, seen in (("", "/"), ("/", "/"), ("/a/b?c=d", "/a/b?c=d"), ("?c=d", "/?c=d")):
        got = wire.call("GET", base + tail, headers={"Cookie": "console=secret", "X-Admin-Token": "secret"})
        assert got.status == 200, got.body
        echoed = got.json()
        assert echoed["path"] == seen
        assert not {"cookie", "x-api-key", "x-admin-token"} & {name.lower() for name in echoed["headers"]}
        assert echoed["headers"]["X-Forwarded-Prefix"] == base
        assert got.headers["Content-Security-Policy"].startswith("sandbox ")
    assert wire.call("GET", f"/box/{served.id}/49983/init", with_key=False).status == 404
    assert wire.call("GET", f"/box/{served.id}/49983/x/../init", with_key=False).status == 404
    assert wire.call("GET", "/box/inonexistent00000000x/80/", with_key=False).status == 502
    assert wire.call("GET", f"/box/{served.id}/http/", with_key=False).status == 404


def test_names_below_localhost_route(wire: Wire, served: RawBox) -> None:
    host = {"Host": f"8000-{served.id}.localhost:{wire.address[1]}"}
    assert wire.call("GET", "/", headers=host, with_key=False).status == 200


def test_the_host_can_be_masked(wire: Wire) -> None:
    box = wire.create(timeout=60, network={"maskRequestHost": "app.internal:${PORT}"})
    try:
        serve(box, "127.0.0.1", 8000)
        headers = box.port(8000).json()["headers"]
        assert headers["Host"] == "app.internal:8000"
        assert headers["X-Forwarded-Host"]
    finally:
        box.kill()
