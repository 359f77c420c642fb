# SPDX-License-Identifier: Apache-2.0
"""Requests as they are on the wire: framing, proxies, addresses, large bodies both ways."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import Any, AsyncIterator, Iterator

import httpx
import pytest
from both import Both
from faulty import Asked, Connection, Faulty

import cloche
from cloche._core.connect import FRAME_MAX, Frames, RpcError, error_of, frame
from cloche._core.execution import Lines
from cloche.exceptions import EndCause, parse_time

WRITTEN = json.dumps([{"name": "x", "type": "file", "path": "/x"}]).encode()


def test_a_cell_is_one_request_with_the_stock_bodys_fields(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: to.reply(200, b'{"type":"end_of_execution"}\n'))
    both.run(lambda: both.box(server.url).run_code("1", envs={"A": "b"}))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/execute")
    assert json.loads(asked.body) == {"code": "1", "context_id": None, "language": None, "env_vars": {"A": "b"}}
    assert asked.headers["e2b-sandbox-id"] == "box"
    assert asked.headers["e2b-sandbox-port"] == "49999"
    assert asked.headers["x-access-token"] == "token"
    assert asked.headers["user-agent"].startswith("cloche-python/")


@pytest.mark.parametrize("envs", [None, {"A": "b"}])
def test_a_command_with_variables_asks_for_their_privacy(both: Both, server: Faulty, envs: Any) -> None:
    end = b'{"error":{"code":"internal","message":"x"}}'
    server.then(lambda to, asked: to.reply(200, b"\x02" + len(end).to_bytes(4, "big") + end))
    with pytest.raises(cloche.SandboxException):
        both.run(lambda: both.box(server.url).commands.run("true", envs=envs, user="root"))
    asked = server.asked[0]
    assert asked.headers.get("cloche-private-env") == ("true" if envs else None)
    assert asked.headers["authorization"] == "Basic cm9vdDo="
    assert asked.headers["connect-timeout-ms"] == "60000"


def test_an_iterable_is_sent_in_chunks_and_bytes_with_their_length(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: to.reply(200, WRITTEN))

    def pieces() -> Iterator[bytes]:
        yield b"ab"
        yield b""
        yield b"c"

    async def apieces() -> AsyncIterator[bytes]:
        for piece in pieces():
            yield piece

    box = both.box(server.url)
    both.run(lambda: box.files.write("/x", apieces() if both.asynchronous else pieces()))
    both.run(lambda: box.files.write("/x", "abc"))
    assert [asked.body for asked in server.asked] == [b"abc", b"abc"]
    assert server.asked[0].headers["transfer-encoding"] == "chunked"
    assert server.asked[1].headers["content-length"] == "3"


def test_an_iterable_of_something_else_is_refused(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: to.reply(200, WRITTEN))

    async def apieces() -> AsyncIterator[Any]:
        yield "text"

    with pytest.raises(cloche.InvalidArgumentException, match="bytes"):
        both.run(lambda: both.box(server.url).files.write("/x", apieces() if both.asynchronous else iter(["text"])))


def test_large_bodies_pass_both_ways(both: Both, server: Faulty) -> None:
    data = os.urandom(9_000_000)

    def answer(to: Connection, asked: Asked) -> None:
        if asked.method == "POST":
            to.reply(200, WRITTEN)
        else:
            to.reply(200, data)

    server.then(answer)
    box = both.box(server.url)
    both.run(lambda: box.files.write("/x", data))
    assert server.asked[-1].body == data
    assert both.run(lambda: box.files.read("/x", format="bytes")) == data


def test_a_reader_that_stops_holds_up_its_sender(both: Both, server: Faulty) -> None:
    sent = []

    def answer(to: Connection, asked: Asked) -> bool:
        to.begin()
        for at in range(400):
            to.chunk(b"x" * 100_000)
            sent.append(at)
        return False

    server.then(answer)

    async def main() -> None:
        async with await cloche.AsyncSandbox(**options(server)).files.read("/x", format="stream") as stream:
            async for _ in stream:
                break
            for _ in range(50):
                await asyncio.sleep(0)

    def blocking() -> None:
        with cloche.Sandbox(**options(server)).files.read("/x", format="stream") as stream:
            next(iter(stream))

    asyncio.run(main()) if both.asynchronous else blocking()
    assert len(sent) < 400


def options(server: Faulty) -> Any:
    config = cloche.ConnectionConfig(api_key="key", api_url=server.url, sandbox_url=server.url)
    return {
        "sandbox_id": "box",
        "sandbox_domain": None,
        "envd_version": "0.6.13",
        "envd_access_token": "token",
        "connection_config": config,
    }


@pytest.mark.parametrize("by", ["option", "environment", "httpx"])
def test_a_proxy_gets_the_request(both: Both, server: Faulty, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server.then(lambda to, asked: to.reply(204))
    proxy: Any = server.url.replace("//", "//me:pw@")
    opts = {"option": {"proxy": proxy}, "httpx": {"proxy": httpx.Proxy(proxy)}, "environment": {}}[by]
    if by == "environment":
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
    assert both.run(lambda: both.Sandbox.kill("box", api_key="key", api_url="http://api.invalid", **opts))
    assert server.asked[0].path == "http://api.invalid/sandboxes/box"
    assert server.asked[0].headers["proxy-authorization"] == "Basic bWU6cHc="


def test_no_proxy_excepts_an_address(both: Both, server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    server.then(lambda to, asked: to.reply(204))
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://proxy.invalid:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    assert both.run(lambda: both.Sandbox.kill("box", api_key="key", api_url=server.url))


def test_a_logger_hears_of_requests(both: Both, server: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    made = {"sandboxID": "new", "envdVersion": "0.6.13", "templateID": "base"}
    server.then(lambda to, asked: to.reply(201, json.dumps(made).encode()))
    with caplog.at_level(logging.INFO):
        both.run(lambda: both.Sandbox.create(api_key="key", api_url=server.url, logger=logging.getLogger("test")))
    assert [record.message for record in caplog.records if record.name == "test"] == [
        f"Request POST {server.url}/v2/sandboxes",
        "Response 201",
    ]


def test_a_refused_connection_is_httpxs_error_for_the_api(both: Both) -> None:
    with pytest.raises(httpx.ConnectError):
        both.run(lambda: both.Sandbox.kill("box", api_key="key", api_url="http://127.0.0.1:9"))


def test_without_a_key_nothing_is_sent(both: Both) -> None:
    with pytest.raises(cloche.AuthenticationException, match="E2B_API_KEY"):
        both.run(lambda: both.Sandbox.kill("box", api_url="http://127.0.0.1:9"))


def test_frames_refuse_what_no_agent_sends() -> None:
    with pytest.raises(RpcError, match="limit"):
        Frames().feed(b"\x00" + (FRAME_MAX + 1).to_bytes(4, "big"))
    with pytest.raises(RpcError, match="compressed"):
        Frames().feed(b"\x01" + frame({})[1:])
    with pytest.raises(RpcError, match="not JSON"):
        Frames().feed(b"\x00\x00\x00\x00\x01x")
    with pytest.raises(RpcError, match="object"):
        Frames().feed(b"\x00\x00\x00\x00\x02[]")


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, b'{"code":"not_found","message":"m"}', "not_found", "m"),
        (404, b"", "not_found", "HTTP 404"),
        (418, b"tea", "unknown", "tea"),
        (500, b'{"code":429,"message":"m"}', "resource_exhausted", "m"),
        (409, b'{"code":"nonsense"}', "already_exists", '{"code":"nonsense"}'),
        (502, b'{"message":"The sandbox was not found"}', "unavailable", "The sandbox was not found"),
    ],
)
def test_errors_of_calls(status: int, body: bytes, code: str, message: str) -> None:
    error = error_of(status, body)
    assert (error.code, error.message) == (code, message)


def test_lines_come_whole() -> None:
    lines = Lines()
    assert [lines.feed(piece) for piece in (b"a", b"b\nc", b"\n\n", b"d")] == [[], [b"ab"], [b"c", b""], []]
    assert lines.finish() == [b"d"]
    assert lines.finish() == []


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("x: it ended at 2026-01-02T03:04:05Z, timeout: it was over", "timeout: it was over"),
        ("it ended at 2026-01-02T03:04:05.123456789Z, killed: by request", "killed: by request"),
        ("it ended at 2026-01-02T03:04:05+00:00, lost", "lost"),
        ("it did not end", None),
    ],
)
def test_causes_are_found_in_messages(message: str, shown: Any) -> None:
    found = EndCause.find(message)
    assert (str(found) if found else None) == shown
    assert found is None or (found.ended_at is not None and found.ended_at.year == 2026)


def test_times_of_any_precision() -> None:
    for text in ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456789+00:00"):
        time = parse_time(text)
        assert time is not None and time.tzinfo is not None
    assert parse_time("yesterday") is None
