# SPDX-License-Identifier: Apache-2.0
"""Servers that speak HTTP/2: requests of either version reach them, many on one connection, with their trailers."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support.egress_lab import API, H2, Lab

HOST = "https://h2.example.com"
RULE = {"*.example.com": {"X-Key": "${e2b.secrets.key}", "User-Agent": "ruled"}}
VERSIONS = ("--http1.1", "--http2")
SIZE = 20 << 20

# One request by hand: server, host, path, whether to wait for each message's echo. Says what came back.
BY_HAND = """
import json, socket, ssl, sys
import h2.config, h2.connection, h2.events
ca, address, host, path, echoes = sys.argv[1:6]
context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
s = context.wrap_socket(socket.create_connection((address, 443)), server_hostname=host)
s.settimeout(20)
assert s.selected_alpn_protocol() == "h2"
c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
c.initiate_connection()
head = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", path)]
c.send_headers(1, [*head, ("te", "trailers"), ("content-type", "application/grpc"), ("x-key", "mine")])
s.sendall(c.data_to_send())
got = {"headers": [], "body": "", "trailers": [], "reset": None, "turns": 0}
over = False
def listen(until):
    global over
    while not over and len(got["body"]) < until:
        data = s.recv(65536)
        if not data:
            got["reset"], over = "eof", True
        for e in c.receive_data(data):
            if isinstance(e, h2.events.ResponseReceived): got["headers"] = list(e.headers)
            elif isinstance(e, h2.events.TrailersReceived): got["trailers"] = list(e.headers)
            elif isinstance(e, h2.events.StreamReset): got["reset"], over = int(e.error_code), True
            elif isinstance(e, h2.events.StreamEnded): over = True
            elif isinstance(e, h2.events.DataReceived):
                got["body"] += e.data.decode()
                c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        s.sendall(c.data_to_send())
for n in range(3):
    c.send_data(1, b"message %d;" % n)
    s.sendall(c.data_to_send())
    if echoes == "1":
        listen((n + 1) * 10)
        got["turns"] += 1
c.send_headers(1, [("x-check", "7"), ("x-key", "forged"), ("authorization", "forged")], end_stream=True)
s.sendall(c.data_to_send())
listen(1 << 60)
print(json.dumps(got))
"""

# The same by HTTP/1.1, with chunks and a trailer; prints all that comes.
BY_HAND_1 = """
import socket, ssl, sys
ca, address, host, path = sys.argv[1:5]
context = ssl.create_default_context(cafile=ca)
s = context.wrap_socket(socket.create_connection((address, 443)), server_hostname=host)
s.settimeout(20)
s.sendall((f"POST {path} HTTP/1.1\\r\\nHost: {host}\\r\\nTE: trailers\\r\\nConnection: TE, close\\r\\n"
           "Transfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\nX-Check: 7\\r\\nX-Key: forged\\r\\n"
           "Host: forged\\r\\n\\r\\n").encode())
print(b"".join(iter(lambda: s.recv(65536), b"")).decode())
"""


def policy(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})


def by_hand(lab: Lab, path: str, *, at: str = H2, host: str = "h2.example.com", echoes: bool = False) -> dict[str, Any]:
    words = [str(lab.dir / "both.pem"), at, host, path, str(int(echoes))]
    got: dict[str, Any] = json.loads(lab.client("one", sys.executable, "-c", BY_HAND, *words))
    return got


def by_hand_1(lab: Lab, path: str, at: str, host: str) -> str:
    return lab.client("one", sys.executable, "-c", BY_HAND_1, str(lab.dir / "both.pem"), at, host, path)


def resident(lab: Lab) -> int:
    """KiB of the gateway's memory."""
    assert lab.gateway
    lines = Path(f"/proc/{lab.gateway.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_requests_of_either_version_go_by_http2_with_the_rules_headers(lab: Lab) -> None:
    policy(lab)
    for version in VERSIONS:
        sent = ("-H", "X-Key: mine", "-H", "X-Own: 1", "-H", "Connection: keep-alive, X-Hop", "-H", "X-Hop: 1")
        told = lab.ask("one", f"{HOST}/v1?q=1", version, *(sent if version == "--http1.1" else sent[:4]), at=H2)
        assert told["version"] == 2
        assert told["path"] == "/v1?q=1"
        assert told["fields"][":authority"] == "h2.example.com"
        assert told["fields"]["x-own"] == "1"
        assert told["fields"]["user-agent"] == "ruled"
        assert [v for k, v in told["headers"] if k == "x-key"] == ["s3cret"]
        assert not {"connection", "host", "x-hop", "te", "transfer-encoding"} & set(told["fields"])


def test_large_bodies_both_ways(lab: Lab) -> None:
    policy(lab)
    body = lab.dir / "body2"
    body.write_bytes(bytes(range(256)) * (SIZE // 256))
    digest = hashlib.sha256(body.read_bytes()).hexdigest()
    got = lab.dir / "got2"
    for version in VERSIONS:
        told = lab.ask("one", f"{HOST}/", version, "-T", str(body), at=H2)
        assert (told["method"], told["size"], told["sha256"]) == ("PUT", SIZE, digest)
        assert told["fields"]["content-length"] == str(SIZE)
        lab.curl("one", f"{HOST}/big/{SIZE}", version, "-o", str(got), at=H2)
        assert hashlib.sha256(got.read_bytes()).hexdigest() == digest
    told = lab.ask("one", f"{HOST}/", "--http1.1", "-T", str(body), "-H", "Transfer-Encoding: chunked", at=H2)
    assert (told["size"], told["sha256"]) == (SIZE, digest)
    assert "content-length" not in told["fields"]
    got.unlink()
    body.unlink()


def test_methods_and_statuses(lab: Lab) -> None:
    policy(lab)
    for version in VERSIONS:
        assert lab.curl("one", f"{HOST}/", version, "-I", at=H2).splitlines()[0].split()[1] == "200"
        assert lab.ask("one", f"{HOST}/", version, "-X", "DELETE", at=H2)["method"] == "DELETE"
        told = lab.ask("one", f"{HOST}/", version, "-d", "a=b", "-H", "Expect: 100-continue", at=H2)
        assert (told["size"], told["method"]) == (3, "POST")


def test_many_requests_share_one_connection(lab: Lab) -> None:
    """The server answers none before all ten are there; they come from ten connections of the box, then from one."""
    policy(lab)
    first = lab.ask("one", f"{HOST}/", at=H2)["peer"]
    words = ["curl", "-sS", "--max-time", "20", "--cacert", str(lab.dir / "both.pem")]
    words += ["--resolve", f"h2.example.com:443:{H2}", f"{HOST}/hold/10"]
    ten = [subprocess.Popen([*lab.enter("one"), *words], stdout=subprocess.PIPE) for _ in range(10)]
    peers = [json.loads(p.communicate(timeout=25)[0])["peer"] for p in ten]
    assert peers == [first] * 10
    urls = [f"{HOST}/hold/10"] * 10
    said = lab.curl("one", urls[0], "--http2", "--parallel", "--parallel-immediate", *urls[1:], at=H2)
    assert said.count(json.dumps(first)) == 10


def test_two_boxes_never_share_a_connection(lab: Lab) -> None:
    policy(lab)
    lab.set("two", hosts=RULE, secrets={"key": "of-two"})
    one, two = (lab.ask(box, f"{HOST}/", at=H2) for box in ("one", "two"))
    assert (one["fields"]["x-key"], two["fields"]["x-key"]) == ("s3cret", "of-two")
    assert one["peer"] != two["peer"]
    lab.remove("two")


def test_a_slow_reader_holds_back_the_server_and_nobody_else(lab: Lab) -> None:
    policy(lab)
    first = lab.ask("one", f"{HOST}/", at=H2)["peer"]
    words = ["curl", "-sS", "--limit-rate", "100k", "--cacert", str(lab.dir / "both.pem"), "-o", "/dev/null"]
    words += ["--resolve", f"h2.example.com:443:{H2}", f"{HOST}/big/{200 << 20}"]
    slow = [subprocess.Popen([*lab.enter("one"), *words, v]) for v in VERSIONS]
    try:
        for _ in range(20):
            before = resident(lab)
            time.sleep(0.5)  # that memory grows no more, once all windows are full, is what is waited for
            if resident(lab) - before < 500:
                break
        else:
            raise AssertionError("memory grows with what nobody reads")
        began = time.monotonic()
        assert lab.ask("one", f"{HOST}/", at=H2)["peer"] == first
        assert time.monotonic() - began < 5
        assert all(p.poll() is None for p in slow)
    finally:
        for p in slow:
            p.kill()
            p.wait()
    assert lab.ask("one", f"{HOST}/", at=H2)["fields"]["x-key"] == "s3cret"


def test_after_goaway_the_next_request_takes_another_connection(lab: Lab) -> None:
    policy(lab)
    first = lab.ask("one", f"{HOST}/", at=H2)["peer"]
    assert lab.ask("one", f"{HOST}/goaway", at=H2)["peer"] == first
    second = lab.ask("one", f"{HOST}/", at=H2)["peer"]
    assert second != first
    assert lab.ask("one", f"{HOST}/", at=H2)["peer"] == second


def test_a_refused_stream_is_tried_once_more_elsewhere(lab: Lab) -> None:
    policy(lab)
    told = lab.ask("one", f"{HOST}/first-only", at=H2)
    again = lab.ask("one", f"{HOST}/first-only", at=H2)
    assert told["fields"]["x-key"] == again["fields"]["x-key"] == "s3cret"
    assert told["peer"] != again["peer"]


def test_a_broken_answer_is_broken_for_the_box_too(lab: Lab) -> None:
    policy(lab)
    for version in VERSIONS:
        said = lab.curl("one", f"{HOST}/broken", version, at=H2, check=False)
        assert "curl: (" in said, said
        said = lab.curl("one", f"{HOST}/huge", version, "-w", "%{http_code}", at=H2, check=False)
        assert said.endswith("502"), said
        assert lab.ask("one", f"{HOST}/", version, at=H2)["version"] == 2


def test_grpc_messages_and_trailers_pass(lab: Lab) -> None:
    policy(lab)
    got = by_hand(lab, "/echo", echoes=True)
    assert got["turns"] == 3  # each was heard before the next was said
    assert got["body"] == "message 0;message 1;message 2;"
    assert ["x-te", "trailers"] in got["headers"]
    assert got["trailers"] == [["grpc-status", "0"], ["grpc-message", "fine"]]
    got = by_hand(lab, "/refused")
    assert ["grpc-status", "7"] in got["headers"]
    assert (got["body"], got["reset"]) == ("", None)


def test_trailers_of_requests_pass_but_for_what_rules_set(lab: Lab) -> None:
    policy(lab)
    got = by_hand(lab, "/")
    told = json.loads(got["body"])
    assert told["trailers"] == [["x-check", "7"]]
    assert [v for k, v in told["headers"] if k == "x-key"] == ["s3cret"]
    assert got["trailers"] == [["x-sum", "42"]]


def test_trailers_between_the_versions(lab: Lab) -> None:
    policy(lab)
    got = by_hand(lab, "/chunked", at=API, host="api.example.com")
    assert got["body"] == "".join(f"part {n}" for n in range(5))
    assert got["trailers"] == [["x-sum", "42"]]
    told = json.loads(by_hand(lab, "/", at=API, host="api.example.com")["body"])
    assert told["trailers"] == [["x-check", "7"]]
    assert ["TE", "trailers"] in told["headers"]
    for path, at, host in (("/", H2, "h2.example.com"), ("/", API, "api.example.com")):
        said = by_hand_1(lab, path, at, host)
        assert '"trailers": [["x-check", "7"]]' in said.lower(), said
    for path, at, host in (("/", H2, "h2.example.com"), ("/chunked", API, "api.example.com")):
        said = by_hand_1(lab, path, at, host)
        assert said.lower().endswith("\r\n0\r\nx-sum: 42\r\n\r\n\n"), said


def test_an_http2_server_that_never_answers(lab: Lab) -> None:
    lab.restart(egress_idle_seconds=1)
    policy(lab)
    said = lab.curl("one", f"{HOST}/never", "-w", "%{http_code}", at=H2, wait=15, check=False)
    assert said.endswith(("504", "000")), said
    assert lab.ask("one", f"{HOST}/", at=H2)["fields"]["x-key"] == "s3cret"
    lab.restart()


def test_streams_beyond_the_limit_take_another_connection(lab: Lab) -> None:
    lab.restart(egress_streams=4)
    policy(lab)
    words = ["curl", "-sS", "--max-time", "20", "--cacert", str(lab.dir / "both.pem")]
    words += ["--resolve", f"h2.example.com:443:{H2}", f"{HOST}/big/{4 << 20}", "--limit-rate", "2M", "-o", "/dev/null"]
    held = [subprocess.Popen([*lab.enter("one"), *words]) for _ in range(6)]
    assert lab.ask("one", f"{HOST}/", at=H2)["version"] == 2
    assert [p.wait(25) for p in held] == [0] * 6
    lab.restart()
