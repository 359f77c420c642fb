# SPDX-License-Identifier: Apache-2.0
"""What arrives on the API port: keys, odd headers, odd bodies, odd paths, hostile bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import e2b
import pytest

from support.wire import RawBox, Wire


@pytest.fixture(scope="module")
def living(wire: Wire) -> Iterator[RawBox]:
    box = wire.create(timeout=200)
    yield box
    box.kill()


GUARDED = [
    ("POST", "/sandboxes"),
    ("POST", "/v2/sandboxes"),
    ("GET", "/v2/sandboxes"),
    ("GET", "/sandboxes"),
    ("GET", "/sandboxes/inonexistent00000000x"),
    ("DELETE", "/sandboxes/inonexistent00000000x"),
    ("POST", "/sandboxes/inonexistent00000000x/timeout"),
    ("GET", "/sandboxes/inonexistent00000000x/logs"),
    ("GET", "/sandboxes/inonexistent00000000x/metrics"),
    ("GET", "/templates"),
    ("GET", "/snapshots"),
]


@pytest.mark.parametrize("method, path", GUARDED)
@pytest.mark.parametrize("key", [None, "", "e2b_" + "0" * 40, "nonsense", "e2b_xyz"])
def test_without_the_key_nothing_is_told(wire: Wire, method, path, key) -> None:
    stranger = Wire(wire.url, key)
    got = stranger.call(method, path, {} if method == "POST" else None)
    assert got.status == 401, got.body
    assert got.json()["code"] == 401
    assert got.headers["Content-Type"].startswith("application/json")


def test_the_sdk_says_authentication() -> None:
    with pytest.raises(e2b.AuthenticationException):
        e2b.Sandbox.create(api_key="e2b_" + "0" * 40)


def test_a_live_box_is_not_told_to_strangers(wire: Wire, living: RawBox) -> None:
    stranger = Wire(wire.url, "e2b_" + "0" * 40)
    real = stranger.call("GET", f"/sandboxes/{living.id}")
    ghost = stranger.call("GET", "/sandboxes/inonexistent00000000x")
    assert (real.status, real.body) == (ghost.status, ghost.body)


def test_the_keys_header_has_any_case(wire: Wire) -> None:
    for name in ("x-api-key", "X-API-Key", "X-Api-KEY"):
        got = wire.call("GET", "/v2/sandboxes", headers={name: wire.key}, with_key=False)
        assert got.status == 200


def test_a_chunked_body_without_length(wire: Wire) -> None:
    body = json.dumps({"templateID": "base", "timeout": 30}).encode()
    kind = {"Content-Type": "application/json"}
    got = wire.call("POST", "/v2/sandboxes", body, kind, chunked=True)
    assert got.status == 201
    RawBox(wire, got.json()).kill()


def test_header_names_with_underscores(wire: Wire) -> None:
    odd = {"lang_version": "20", "package_version": "2.51.0", "sdk_runtime": "node", "lang": "js"}
    assert wire.call("GET", "/v2/sandboxes", headers=odd).status == 200


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/no/such/route", 404),
        ("PATCH", "/v2/sandboxes", 405),
        ("GET", "/sandboxes/inonexistent00000000x/nothing", 404),
        ("GET", "/v9/sandboxes", 404),
    ],
)
def test_errors_are_objects_that_repeat_the_status(wire: Wire, method, path, status) -> None:
    got = wire.call(method, path)
    assert got.status in (status, 404)
    assert got.json()["code"] == got.status
    assert got.json()["message"]
    assert int(got.headers["Content-Length"]) > 0


def test_percent_encoded_slashes_stay_in_their_segment(wire: Wire) -> None:
    got = wire.call("GET", "/templates/aliases/team%2Fname%3Atag")
    assert got.status in (400, 404)
    assert got.json()["code"] == got.status
    got = wire.call("DELETE", "/templates/team%2Fname%3Atag")
    assert got.status == 404
    got = wire.call("GET", "/sandboxes%2Fx")
    assert got.status == 404


def test_empty_successes_say_so(wire: Wire, living: RawBox) -> None:
    got = wire.call("POST", f"/sandboxes/{living.id}/timeout", {"timeout": 200})
    assert (got.status, got.body) == (204, b"")
    assert got.headers["Transfer-Encoding"] is None


def test_envd_version_is_high_enough_for_everything(living: RawBox) -> None:
    version = tuple(int(part) for part in living.made["envdVersion"].split("."))
    assert version >= (0, 6, 4)


def test_health_needs_no_key(wire: Wire) -> None:
    got = wire.call("GET", "/health", with_key=False)
    assert (got.status, got.text.strip()) == (200, "Health check successful")


def test_keep_alive_and_pipelining(wire: Wire) -> None:
    request = f"GET /v2/sandboxes?limit=1 HTTP/1.1\r\nHost: x\r\nX-API-KEY: {wire.key}\r\n\r\n"
    with wire.open() as link:
        link.sendall(request.encode() * 3)
        seen = b""
        while seen.count(b"HTTP/1.1 200") < 3:
            part = link.recv(65536)
            assert part, seen
            seen += part


def test_a_body_announced_with_expect_is_asked_for(wire: Wire) -> None:
    body = b'{"templateID": "no-such-template"}'
    head = (
        f"POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-KEY: {wire.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    with wire.open() as link:
        link.sendall(head.encode())
        assert link.recv(4096).startswith(b"HTTP/1.1 100")
        link.sendall(body)
        assert b"HTTP/1.1 404" in link.recv(65536)


SMUGGLING = [
    b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    b"Content-Length: -5\r\n\r\n",
    b"Content-Length: 5x\r\n\r\nabcde",
    b"X-A: b\r\n folded\r\n\r\n",
    b"X A: b\r\n\r\n",
    b"X-A: b\rX-B: c\r\n\r\n",
    b"X-A\x00: b\r\n\r\n",
]


@pytest.mark.parametrize("rest", SMUGGLING)
def test_smuggling_is_refused_and_the_connection_closed(wire: Wire, rest: bytes) -> None:
    head = f"POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-KEY: {wire.key}\r\n".encode()
    follow = f"GET /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-KEY: {wire.key}\r\n\r\n".encode()
    answer = wire.exchange(head + rest + follow, timeout=3)
    assert b" 200 OK" not in answer
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"x" * 200_000 + b"\r\n\r\n",
        b"G" * 100_000,
    ],
)
def test_connections_of_random_bytes_hurt_nobody(wire: Wire, bytes_sent: bytes) -> None:
    answer = wire.exchange(bytes_sent, timeout=3)
    assert b" 200 " not in answer.split(b"\r\n")[0]
    assert wire.call("GET", "/health").status == 200


def test_a_deep_or_huge_json_is_refused_kindly(wire: Wire) -> None:
    kind = {"Content-Type": "application/json"}
    deep = b'{"templateID":' + b"[" * 100_000
    assert wire.call("POST", "/sandboxes", deep, kind).status == 400
    assert wire.call("GET", "/health").status == 200


def test_a_browsers_cross_origin_request_to_the_api_is_allowed(wire: Wire) -> None:
    asked = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-api-key,content-type,lang_version,idempotency-key",
    }
    got = wire.call("OPTIONS", "/v2/sandboxes", headers=asked, with_key=False)
    assert got.status in (200, 204)
    assert got.headers["Access-Control-Allow-Origin"] in ("*", "https://app.example")
    allowed = got.headers["Access-Control-Allow-Headers"].lower()
    assert "x-api-key" in allowed
    assert "idempotency-key" in allowed
    got = wire.call("GET", "/v2/sandboxes", headers={"Origin": "https://app.example"})
    assert got.headers["Access-Control-Allow-Origin"] in ("*", "https://app.example")
    exposed = got.headers["Access-Control-Expose-Headers"].lower()
    assert "x-next-token" in exposed
    assert "should-retry" in exposed


def test_no_key_is_stored_in_the_clear(wire: Wire) -> None:
    assert wire.key
    secret = wire.key.removeprefix("e2b_").encode()
    data = os.environ["CLOCHE_DATA"]
    files = 0
    for folder, folders, names in os.walk(data):
        folders[:] = [name for name in folders if name not in ("boxes", "layers")]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    assert secret not in file.read(), path
                files += 1
    assert files > 0
