# SPDX-License-Identifier: Apache-2.0
"""What callers see when the wire misbehaves."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from both import Both
from faulty import Asked, Connection, Faulty

import cloche
from cloche._core.connect import frame

GONE = {
    "sandboxId": "box",
    "message": "The sandbox was not found: it ended at 2026-01-02T03:04:05.678901Z, out of memory: the box used all of "
    "its 512 MB and the kernel ended it",
    "code": 502,
}


def end_frame(message: Any) -> bytes:
    payload = json.dumps(message).encode()
    return b"\x02" + len(payload).to_bytes(4, "big") + payload


def replying(status: int, message: Any = None, **headers: str) -> Any:
    body = b"" if message is None else json.dumps(message).encode()
    return lambda to, asked: to.reply(status, body, **headers)


def gone_box(to: Connection, asked: Asked) -> None:
    to.reply(502, json.dumps(GONE).encode())


def healthy_after(answer: Any) -> Any:
    """`answer` for everything but the health probe."""

    def either(to: Connection, asked: Asked) -> Any:
        if asked.path == "/health":
            return to.reply(204)
        return answer(to, asked)

    return either


def gone_after(answer: Any) -> Any:
    def either(to: Connection, asked: Asked) -> Any:
        return gone_box(to, asked) if asked.path == "/health" else answer(to, asked)

    return either


def cut_cell(to: Connection, asked: Asked) -> bool:
    to.begin()
    to.chunk(b'{"type":"stdout","text":"a\\n","timestamp":1}\n')
    return False


def test_a_cell_cut_by_the_end_of_its_box_names_the_cause(both: Both, server: Faulty) -> None:
    server.then(gone_after(cut_cell))
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        both.run(lambda: both.box(server.url).run_code("1"))
    assert caught.value.cause is not None
    assert caught.value.cause.kind == "out of memory"
    assert caught.value.cause.ended_at is not None
    assert caught.value.cause.ended_at.year == 2026
    assert isinstance(caught.value, cloche.TimeoutException)


def test_a_cell_cut_while_the_box_lives_raises_what_httpx_says(both: Both, server: Faulty) -> None:
    server.then(healthy_after(cut_cell))
    with pytest.raises(httpx.RemoteProtocolError):
        both.run(lambda: both.box(server.url).run_code("1"))


def test_a_box_that_answers_nobody_is_unreachable(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: False)
    with pytest.raises(cloche.SandboxUnreachableException):
        both.run(lambda: both.box(server.url).files.list("/"))


@pytest.mark.parametrize("call", ["files", "commands", "code"])
def test_every_call_into_an_ended_box_names_the_cause(both: Both, server: Faulty, call: str) -> None:
    server.then(gone_box)
    calls = {
        "files": lambda box: box.files.read("/etc/hostname"),
        "commands": lambda box: box.commands.run("true"),
        "code": lambda box: box.run_code("1"),
    }
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        both.run(lambda: calls[call](both.box(server.url)))
    assert str(caught.value.cause).startswith("out of memory: the box used all of its 512 MB")


def test_an_unknown_box_names_its_cause_on_the_api_too(both: Both, server: Faulty) -> None:
    message = "Sandbox \"box\" doesn't exist: it ended at 2026-01-02T03:04:05Z, timeout: its lifetime of 1 s was over"
    server.then(replying(404, {"code": 404, "message": message}))
    with pytest.raises(cloche.SandboxNotFoundException) as caught:
        both.run(lambda: both.Sandbox.connect("box", api_key="key", api_url=server.url))
    assert caught.value.cause is not None and caught.value.cause.kind == "timeout"
    assert caught.value.status_code == 404


def slow_cell(to: Connection, asked: Asked) -> bool:
    to.begin()
    while not to.gone.wait(0.05):
        to.chunk(b'{"type":"stdout","text":".","timestamp":1}\n')
    return False


def test_the_time_of_a_cell_is_its_whole_time_though_it_prints_all_along(both: Both, server: Faulty) -> None:
    server.then(healthy_after(slow_cell))
    began = time.monotonic()
    with pytest.raises(cloche.TimeoutException):
        both.run(lambda: both.box(server.url).run_code("1", timeout=0.4))
    assert 0.3 < time.monotonic() - began < 10


def test_a_cell_without_limit_outlives_the_request_timeout(both: Both, server: Faulty) -> None:
    def cell(to: Connection, asked: Asked) -> None:
        to.begin()
        to.gone.wait(0.5)
        to.chunk(b'{"type":"result","text":"2","is_main_result":true}\n')
        to.end()

    server.then(cell)
    box = both.box(server.url, request_timeout=0.2)
    assert both.run(lambda: box.run_code("1", timeout=0)).text == "2"


def test_a_silent_request_times_out(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: to.gone.wait(20) and False)
    with pytest.raises(cloche.TimeoutException):
        both.run(lambda: both.Sandbox.kill("box", api_key="key", api_url=server.url, request_timeout=0.2))


def test_lines_of_a_cell_may_be_torn_anywhere(both: Both, server: Faulty) -> None:
    lines = ['{"type":"stdout","text":"h\u00e9\\n","timestamp":1}', '{"type":"result","text":"2","is_main_result":1}']
    text = "\n".join(lines).encode()

    def cell(to: Connection, asked: Asked) -> None:
        to.begin()
        for at in range(len(text)):
            to.chunk(text[at : at + 1])
        to.end()

    server.then(cell)
    execution = both.run(lambda: both.box(server.url).run_code("1"))
    assert execution.logs.stdout == ["h\u00e9\n"]
    assert execution.text == "2"


def test_a_line_that_is_no_json_is_a_sandbox_exception(both: Both, server: Faulty) -> None:
    def cell(to: Connection, asked: Asked) -> None:
        to.begin()
        to.chunk(b"<html>\n")
        to.end()

    server.then(cell)
    with pytest.raises(cloche.SandboxException, match="can't be read"):
        both.run(lambda: both.box(server.url).run_code("1"))


@pytest.mark.parametrize("body", [b"<html>oops</html>", b"", b"[]"])
def test_an_api_error_that_is_no_json_is_still_one_of_ours(both: Both, server: Faulty, body: bytes) -> None:
    server.then(lambda to, asked: to.reply(500, body))
    with pytest.raises(cloche.SandboxException, match="^500: "):
        both.run(lambda: both.Sandbox.kill("box", api_key="key", api_url=server.url))


def test_an_rpc_answer_that_is_no_json_is_a_sandbox_exception(both: Both, server: Faulty) -> None:
    server.then(lambda to, asked: to.reply(200, b"nope"))
    with pytest.raises(cloche.SandboxException, match="not JSON"):
        both.run(lambda: both.box(server.url).files.list("/"))


def test_a_command_cut_without_its_end_is_an_error(both: Both, server: Faulty) -> None:
    def command(to: Connection, asked: Asked) -> None:
        to.begin(Content_Type="application/connect+json")
        to.chunk(frame({"event": {"start": {"pid": 7}}}))
        to.end()

    server.then(gone_after(command))
    with pytest.raises(cloche.SandboxNotRunningException) as caught:
        both.run(lambda: both.box(server.url).commands.run("true"))
    assert caught.value.cause is not None


def test_frames_of_a_command_may_be_torn_anywhere(both: Both, server: Faulty) -> None:
    stream = b"".join(
        (
            frame({"event": {"start": {"pid": 7}}}),
            frame({"event": {"data": {"stdout": "w6k="}}}),
            frame({"event": {"keepalive": {}}}),
            frame({"event": {"end": {"exited": True}}}),
            end_frame({}),
        )
    )

    def command(to: Connection, asked: Asked) -> None:
        to.begin(Content_Type="application/connect+json")
        for at in range(len(stream)):
            to.chunk(stream[at : at + 1])
        to.end()

    server.then(command)
    assert both.run(lambda: both.box(server.url).commands.run("true")).stdout == "\u00e9"


def test_a_command_that_does_not_start_in_time_is_a_timeout(both: Both, server: Faulty) -> None:
    def command(to: Connection, asked: Asked) -> bool:
        to.begin(Content_Type="application/connect+json")
        to.gone.wait(20)
        return False

    server.then(healthy_after(command))
    began = time.monotonic()
    with pytest.raises(cloche.TimeoutException):
        both.run(lambda: both.box(server.url).commands.run("true", request_timeout=0.3))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("code", "exception"),
    [
        ("not_found", cloche.NotFoundException),
        ("invalid_argument", cloche.InvalidArgumentException),
        ("unauthenticated", cloche.AuthenticationException),
        ("resource_exhausted", cloche.RateLimitException),
        ("deadline_exceeded", cloche.TimeoutException),
        ("canceled", cloche.TimeoutException),
        ("internal", cloche.SandboxException),
    ],
)
def test_the_error_of_a_stream_has_its_class(both: Both, server: Faulty, code: str, exception: Any) -> None:
    def command(to: Connection, asked: Asked) -> None:
        to.begin(Content_Type="application/connect+json")
        to.chunk(end_frame({"error": {"code": code, "message": "why"}}))
        to.end()

    server.then(command)
    with pytest.raises(exception, match="why"):
        both.run(lambda: both.box(server.url).commands.connect(7))


@pytest.mark.parametrize(
    ("status", "exception"),
    [
        (400, cloche.InvalidArgumentException),
        (401, cloche.AuthenticationException),
        (404, cloche.FileNotFoundException),
        (429, cloche.RateLimitException),
        (507, cloche.NotEnoughSpaceException),
        (500, cloche.SandboxException),
    ],
)
def test_a_refused_file_has_its_class(both: Both, server: Faulty, status: int, exception: Any) -> None:
    server.then(replying(status, {"code": status, "message": "why"}))
    with pytest.raises(exception, match="why") as caught:
        both.run(lambda: both.box(server.url).files.read("/x"))
    assert caught.value.status_code == status


def test_an_upload_outlives_its_timeout_while_bytes_move(both: Both, server: Faulty) -> None:
    answer = json.dumps([{"name": "x", "type": "file", "path": "/x"}]).encode()
    server.then(lambda to, asked: to.reply(200, answer))

    def pieces() -> Any:
        for _ in range(8):
            server_wait()
            yield b"x" * 10

    async def apieces() -> Any:
        for piece in pieces():
            yield piece

    def server_wait() -> None:
        server_gone.wait(0.1)

    import threading

    server_gone = threading.Event()
    data = apieces() if both.asynchronous else pieces()
    both.run(lambda: both.box(server.url).files.write("/x", data, request_timeout=0.3))
    assert server.asked[-1].body == b"x" * 80


def test_a_download_outlives_its_timeout_while_bytes_move(both: Both, server: Faulty) -> None:
    def file(to: Connection, asked: Asked) -> None:
        to.begin()
        for _ in range(8):
            to.gone.wait(0.1)
            to.chunk(b"x" * 10)
        to.end()

    server.then(file)
    assert both.run(lambda: both.box(server.url).files.read("/x", request_timeout=0.4)) == "x" * 80


def test_a_download_that_stops_is_a_timeout(both: Both, server: Faulty) -> None:
    def file(to: Connection, asked: Asked) -> bool:
        to.begin()
        to.chunk(b"x")
        to.gone.wait(20)
        return False

    server.then(healthy_after(file))
    with pytest.raises(cloche.TimeoutException):
        both.run(lambda: both.box(server.url).files.read("/x", request_timeout=0.3))
