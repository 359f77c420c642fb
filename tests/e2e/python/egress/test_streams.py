# SPDX-License-Identifier: Apache-2.0
"""Inspected connections carry what HTTP carries: large and endless bodies, WebSockets, both versions."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time

from support.egress_lab import API, H2, WS, Lab

RULE = {"*.example.com": {"X-Key": "${e2b.secrets.key}"}}

WEBSOCKET = """
import asyncio, ssl, sys
from websockets.asyncio.client import connect
async def main():
    c = ssl.create_default_context(cafile=sys.argv[1])
    async with connect("wss://ws.example.com/", host=sys.argv[2], port=443, ssl=c) as ws:
        print(await ws.recv())
        await ws.send("x" * 100000)
        print(len(await ws.recv()))
asyncio.run(main())
"""


def policy(lab: Lab) -> None:
    lab.set("one", hosts=RULE, secrets={"key": "s3cret"})


def test_http2_towards_the_box(lab: Lab) -> None:
    policy(lab)
    told = lab.ask("one", "https://api.example.com/", "--http2")
    assert told["fields"]["x-key"] == "s3cret"
    said = lab.curl("one", "https://api.example.com/", "--http2", "-o", "/dev/null", "-w", "%{http_version}")
    assert said == "2"
    said = lab.curl("one", "https://api.example.com/", "--http1.1", "-o", "/dev/null", "-w", "%{http_version}")
    assert said == "1.1"


def test_a_server_that_offers_http2(lab: Lab) -> None:
    policy(lab)
    for version in ("--http1.1", "--http2"):
        told = lab.ask("one", "https://h2.example.com/", version, at=H2)
        assert told["fields"]["x-key"] == "s3cret"


def test_large_bodies_both_ways(lab: Lab) -> None:
    policy(lab)
    size = 24 << 20
    body = lab.dir / "body"
    body.write_bytes(bytes(range(256)) * (size // 256))
    digest = hashlib.sha256(body.read_bytes()).hexdigest()
    for version in ("--http1.1", "--http2"):
        for framing in ((), ("-H", "Transfer-Encoding: chunked")):
            if version == "--http2" and framing:
                continue
            told = lab.ask("one", "https://api.example.com/", version, "-T", str(body), *framing)
            assert (told["method"], told["size"], told["sha256"]) == ("PUT", size, digest)
        got = lab.dir / "got"
        lab.curl("one", f"https://api.example.com/big/{size}", version, "-o", str(got))
        assert hashlib.sha256(got.read_bytes()).hexdigest() == digest
        got.unlink()
    body.unlink()


def test_methods_and_framings(lab: Lab) -> None:
    policy(lab)
    for version in ("--http1.1", "--http2"):
        assert lab.curl("one", "https://api.example.com/", version, "-I").splitlines()[0].split()[1] == "200"
        assert lab.curl("one", "https://api.example.com/chunked", version) == "".join(f"part {n}" for n in range(5))
        assert lab.curl("one", "https://api.example.com/close", version) == "until the end"
        told = lab.ask("one", "https://api.example.com/", version, "-X", "DELETE")
        assert told["method"] == "DELETE"
        told = lab.ask("one", "https://api.example.com/", version, "-d", "a=b", "-H", "Expect: 100-continue")
        assert told["size"] == 3


def test_answers_stream_as_they_come(lab: Lab) -> None:
    policy(lab)
    began = time.monotonic()
    words = ["curl", "-sSN", "--cacert", str(lab.dir / "both.pem"), "--resolve", f"api.example.com:443:{API}"]
    p = subprocess.Popen([*lab.enter("one"), *words, "https://api.example.com/stream"], stdout=subprocess.PIPE)
    try:
        assert p.stdout
        assert p.stdout.readline() == b"0000\n"
        assert time.monotonic() - began < 5
    finally:
        p.kill()
        p.wait()


def test_websockets(lab: Lab) -> None:
    policy(lab)
    said = lab.client("one", sys.executable, "-c", WEBSOCKET, str(lab.dir / "both.pem"), WS).splitlines()
    fields = {k.lower(): v for k, v in json.loads(said[0]).items()}
    assert fields["x-key"] == "s3cret"
    assert said[1] == "100000"


def test_connections_to_servers_are_used_again(lab: Lab) -> None:
    policy(lab)
    first, second = (lab.ask("one", "https://api.example.com/")["peer"] for _ in range(2))
    assert first == second


def test_a_request_that_may_have_been_done_is_not_sent_twice(lab: Lab) -> None:
    """The server reads each of these on a kept connection and closes it without an answer."""
    policy(lab)
    lab.ask("one", "https://api.example.com/")
    said = lab.curl("one", "https://api.example.com/lost", "-X", "POST", "-w", "%{http_code}")
    assert said.endswith("502"), said
    lab.ask("one", "https://api.example.com/")
    told = lab.ask("one", "https://api.example.com/lost", "-X", "DELETE")
    assert told["method"] == "DELETE"  # asked again, on a connection of its own
    assert told["lost"] == ["POST", "DELETE"]


def test_too_long_a_head_is_refused(lab: Lab) -> None:
    policy(lab)
    heads = lab.dir / "heads"
    heads.write_text("X-Long: " + "x" * 140000)
    said = lab.curl("one", "https://api.example.com/", "--http1.1", "-H", f"@{heads}", "-w", "%{http_code}")
    assert said.endswith("431"), said[-200:]


def test_the_gateway_killed_in_mid_stream(lab: Lab) -> None:
    policy(lab)
    words = ["curl", "-sSN", "--cacert", str(lab.dir / "both.pem"), "--resolve", f"api.example.com:443:{API}"]
    p = subprocess.Popen(
        [*lab.enter("one"), *words, "https://api.example.com/stream"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert p.stdout
    p.stdout.readline()
    lab.kill()
    assert p.wait(10) != 0
    waiting = subprocess.Popen([*lab.enter("one"), *words, "https://api.example.com/"], stdout=subprocess.PIPE)
    time.sleep(0.3)  # that nothing happens is what is waited for
    assert waiting.poll() is None  # it waits in the listener, it has found no other way
    began = time.monotonic()
    lab.start()
    lab.pump(0.2)
    out, _ = waiting.communicate(timeout=10)
    assert time.monotonic() - began < 5
    assert ["X-Key", "s3cret"] in json.loads(out)["headers"]
