# SPDX-License-Identifier: Apache-2.0
"""Between the versions of HTTP: WebSockets on streams of HTTP/2, and servers that want a request by HTTP/1.1."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.egress_lab import API, H2, WS, Lab

RULE = {"*.example.com": {"X-Key": "${e2b.secrets.key}"}}

# WebSockets by extended CONNECT (RFC 8441): CA, server, host, then steps; one line of JSON per step.
CLIENT = """
import json, os, socket, ssl, struct, sys
import h2.config, h2.connection, h2.events, h2.settings
ca, address, host, *steps = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
s = context.wrap_socket(socket.create_connection((address, 443)), server_hostname=host)
s.settimeout(20)
c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
c.initiate_connection()
s.sendall(c.data_to_send())
streams = {}
def stream(n):
    return streams.setdefault(n, {"status": None, "headers": {}, "data": b"", "end": None})
def step():
    data = s.recv(65536)
    assert data, "the connection ended"
    for e in c.receive_data(data):
        if isinstance(e, h2.events.ResponseReceived):
            stream(e.stream_id)["headers"] = dict(e.headers)
            stream(e.stream_id)["status"] = int(dict(e.headers)[":status"])
        elif isinstance(e, h2.events.DataReceived):
            stream(e.stream_id)["data"] += e.data
            c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        elif isinstance(e, h2.events.StreamEnded):
            stream(e.stream_id)["end"] = "ended"
        elif isinstance(e, h2.events.StreamReset):
            stream(e.stream_id)["end"] = stream(e.stream_id)["end"] or f"reset {int(e.error_code)}"
    s.sendall(c.data_to_send())
def until(found):
    while not found():
        step()
code = h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL
until(lambda: c.remote_settings.get(code))
offered = c.remote_settings[code]
def connect(n, protocol="websocket", **more):
    head = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "https"), (":authority", host),
            (":path", more.get("path", "/")), ("sec-websocket-version", "13"), ("x-key", "mine")]
    c.send_headers(n, head + list(more.get("fields", [])), end_stream=more.get("end", False))
    s.sendall(c.data_to_send())
    until(lambda: stream(n)["status"] or stream(n)["end"])
def frame(text, code=1):
    mask, body = os.urandom(4), text if isinstance(text, bytes) else text.encode()
    size = bytes([128 | len(body)]) if len(body) < 126 else b"\\xfe" + struct.pack(">H", len(body)) \\
        if len(body) < 65536 else b"\\xff" + struct.pack(">Q", len(body))
    return bytes([128 | code]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body))
def say(n, text, code=1):
    data = frame(text, code)
    while data:
        room = min(c.local_flow_control_window(n), c.max_outbound_frame_size, len(data))
        if not room:
            step()
            continue
        c.send_data(n, data[:room])
        data = data[room:]
        s.sendall(c.data_to_send())
def hear(n):
    def size():
        d = stream(n)["data"]
        if len(d) < 2: return None
        short = d[1] & 127
        wide = {126: 2, 127: 8}.get(short, 0)
        if len(d) < 2 + wide: return None
        length = int.from_bytes(d[2:2 + wide], "big") if wide else short
        return (2 + wide, length) if len(d) >= 2 + wide + length else None
    until(lambda: size() or stream(n)["end"])
    if not size(): return None
    at, length = size()
    d = stream(n)["data"]
    stream(n)["data"] = d[at + length:]
    return d[0] & 15, d[at:at + length]
for words in steps:
    print(json.dumps(eval(words)), flush=True)
"""


def policy(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})


def steps(lab: Lab, *words: str, at: str = WS, host: str = "ws.example.com", box: str = "one") -> list[Any]:
    """What a client by hand gets for each step."""
    said = lab.client(box, sys.executable, "-c", CLIENT, str(lab.dir / "both.pem"), at, host, *words)
    return [json.loads(line) for line in said.splitlines()]


def test_a_websocket_by_http2_reaches_a_server_of_http1(lab: Lab) -> None:
    policy(lab)
    offered, status, greeting, echo, other, bye, close, end = steps(
        lab,
        "offered",
        "(connect(1), stream(1)['status'])[1]",
        "hear(1)[1].decode()",
        "(say(1, 'x' * 200000), len(hear(1)[1]))[1]",
        "(connect(3), hear(3), say(3, 'second'), hear(3)[1].decode())[3]",
        "(say(1, 'bye'), hear(1)[0])[1]",
        "say(1, bytes([3, 232]), 8)",
        "(c.end_stream(1), s.sendall(c.data_to_send()), until(lambda: stream(1)['end']), stream(1)['end'])[3]",
    )
    assert (offered, status) == (1, 200)
    fields = {key.lower(): value for key, value in json.loads(greeting).items()}
    assert fields["x-key"] == "s3cret", "the rule's, not the box's own"
    assert fields["host"] == "ws.example.com"
    assert (echo, other) == (200000, "second"), "two streams of one connection are two sockets"
    assert (bye, close, end) == (8, None, "ended")


def test_a_websocket_by_http2_that_breaks_is_reset_and_the_others_go_on(lab: Lab) -> None:
    policy(lab)
    broken, other = steps(
        lab,
        "(connect(1), connect(3), hear(1), hear(3), say(1, 'die'), until(lambda: stream(1)['end']), "
        "stream(1)['end'])[6]",
        "(say(3, 'still here'), hear(3)[1].decode())[1]",
    )
    assert broken in ("reset 2", "ended")
    assert other == "still here"


def test_what_a_websocket_by_http2_may_not_be(lab: Lab) -> None:
    """Other protocols, no stream of its own, another host, a server that does not switch: a clear answer each."""
    policy(lab)
    assert steps(lab, "(connect(1, 'connect-udp'), stream(1)['status'])[1]") == [501]
    assert steps(lab, "(connect(1, end=True), stream(1)['status'])[1]") == [400]
    said = steps(
        lab,
        "(connect(1), stream(1)['status'])[1]",
        "(until(lambda: stream(1)['end']), stream(1)['data'].decode())[1]",
        at=API,
        host="api.example.com",
    )
    assert said[0] == 502, "its 200 is no tunnel"
    assert "can't be passed on" in said[1]
    lab.set("one", hosts={"ws.example.com": {"X-Key": "${e2b.secrets.gone}"}}, secrets={"gone": None})
    said = steps(lab, "(connect(1), stream(1)['status'])[1]", "(until(lambda: stream(1)['end']), "
                 "stream(1)['data'].decode())[1]")
    assert said[0] == 502
    assert "'gone'" in said[1]


@pytest.mark.parametrize("way", ["at-once", "goaway", "late"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_server_that_wants_http1_gets_it(lab: Lab, way: str, version: str) -> None:
    policy(lab)
    told = lab.ask("one", f"https://h2.example.com/http1/{way}", version, at=H2)
    assert told.get("version", 1) == 1
    assert told["fields"]["x-key"] == "s3cret"
    body = lab.dir / "body"
    body.write_bytes(bytes(range(256)) * 160)
    told = lab.ask("one", f"https://h2.example.com/http1/{way}", version, "-T", str(body), at=H2)
    assert (told.get("version", 1), told["size"]) == (1, 40960), "a short body is sent again"
    assert told["sha256"] == hashlib.sha256(body.read_bytes()).hexdigest()


def test_a_body_that_can_not_be_sent_again_is_a_clear_error(lab: Lab) -> None:
    policy(lab)
    body = lab.dir / "body"
    body.write_bytes(b"x" * (1 << 20))
    said = lab.curl("one", "https://h2.example.com/http1/late", "--http2", "-T", str(body), "-w", "%{http_code}", at=H2)
    assert said.endswith("502"), said
    assert "wants this request by HTTP/1.1" in said
    assert "egress_replay_kb" in said


def test_requests_at_once_have_a_limit_over_all_streams_and_two_boxes_have_their_own(lab: Lab) -> None:
    """A box that opens many streams on few connections takes no room from another one."""
    script = Path(lab.dir / "crowd.py")
    script.write_text(
        "import socket, ssl, sys\n"
        "import h2.config, h2.connection, h2.events\n"
        "context = ssl.create_default_context(cafile=sys.argv[1])\n"
        "context.set_alpn_protocols(['h2'])\n"
        f"s = context.wrap_socket(socket.create_connection(('{H2}', 443)), server_hostname='h2.example.com')\n"
        "s.settimeout(20)\n"
        "c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding='utf-8'))\n"
        "c.initiate_connection()\n"
        "for n in range(20):\n"
        "    c.send_headers(1 + 2 * n, [(':method', 'GET'), (':scheme', 'https'), (':authority', 'h2.example.com'),\n"
        "        (':path', '/never')], end_stream=True)\n"
        "s.sendall(c.data_to_send())\n"
        "refused = 0\n"
        "while refused < 12:\n"
        "    for e in c.receive_data(s.recv(65536)):\n"
        "        if isinstance(e, h2.events.ResponseReceived):\n"
        "            assert dict(e.headers)[':status'] == '503', e.headers\n"
        "            refused += 1\n"
        "    s.sendall(c.data_to_send())\n"
        "print('refused', refused, flush=True)\n"
        "sys.stdin.read()\n"
    )
    lab.restart(egress_box_connections=8)
    try:
        policy(lab)
        lab.set("two", hosts=RULE, secrets={"key": "other"})
        with lab.running("one", sys.executable, str(script), str(lab.dir / "both.pem")) as line:
            assert line == "refused 12\n"
            assert lab.ask("two", "https://h2.example.com/", at=H2)["fields"]["x-key"] == "other"
        assert lab.ask("one", "https://h2.example.com/", at=H2)["fields"]["x-key"] == "s3cret", "room again"
    finally:
        lab.restart()
