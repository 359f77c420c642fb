# SPDX-License-Identifier: Apache-2.0
"""Input streams may be silent for longer than any other request body."""

from __future__ import annotations

import time
from collections.abc import Iterator

import e2b
import pytest

from support.server import Server, own_server
from support.waiting import eventually

LIMIT = 2  # seconds of silence inside other request bodies


@pytest.fixture(scope="module")
def impatient() -> Iterator[Server]:
    with own_server("--client-body-seconds", str(LIMIT)) as made:
        yield made


def test_a_silent_input_stream_is_not_cut(impatient: Server) -> None:
    access = {"api_key": impatient.key, "api_url": impatient.url, "sandbox_url": impatient.url}
    with e2b.Sandbox.create("base", **access) as box:
        handle = box.commands.run("cat > /tmp/heard", background=True, stdin=True)

        def spoken() -> Iterator[str]:
            yield "one "
            time.sleep(2 * LIMIT)  # the silence that must not cut the stream
            yield "two"

        box.commands.stream_input(handle.pid, spoken(), timeout=0)
        eventually(lambda: box.files.read("/tmp/heard") == "one two", 5)


def test_another_silent_body_is_cut(impatient: Server) -> None:
    raw = impatient.wire.create()
    with impatient.wire.open(4 * LIMIT) as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in raw.headers().items())
        client.sendall(
            f"POST /files?path=/tmp/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n{head}"
            "Content-Type: application/octet-stream\r\n\r\nabc".encode()
        )
        assert b" 408 " in client.recv(4096).split(b"\r\n")[0]
