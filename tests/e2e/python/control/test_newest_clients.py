# SPDX-License-Identifier: Apache-2.0
"""What the newest stock clients ask for: the checks that no other file has.

The others: snapshots of files only are in checkpoint/test_snapshot_files.py; idempotency keys in
lifecycle/test_idempotency.py; silence of an input stream in lifecycle/test_silent_input.py; a silent agent and a strict
pause in checkpoint/test_healthy.py; a closed port in test_edge.py; $NAME in WORKDIR, COPY and USER in
templates/test_steps.py; the causes of an end in test_causes.py and lifecycle/test_end_causes.py; DNS servers in
network/.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from selectors import BaseSelector
from urllib.parse import urlsplit

import e2b
import h2.config
import h2.connection
import h2.events
import pytest
from e2b.api.client.api.tags import get_templates_template_id_tags
from e2b.api.client.api.templates import (
    get_default_templates,
    get_templates,
    get_templates_aliases_alias,
    get_templates_template_id,
    get_v2_templates,
)
from e2b.api.client_sync import get_api_client

from support.commands import cloche
from support.tls import Relay, Tls
from support.waiting import eventually
from support.wire import RawBox, Wire

LARGE = 64 << 20  # more than all buffers between a box and its client hold
SLICE = 1 << 16


def test_a_timeout_of_nothing_leaves_a_paused_box_paused(wire: Wire) -> None:
    box = wire.create(timeout=60)
    assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    got = wire.call("POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": 0})
    assert (got.status, got.json()["code"]) == (400, 400)
    assert wire.call("GET", f"/sandboxes/{box.id}").json()["state"] == "paused"
    with pytest.raises(e2b.SandboxException, match="400"):
        e2b.Sandbox.connect(box.id, timeout=0)
    assert wire.call("GET", f"/sandboxes/{box.id}").json()["state"] == "paused"
    box.kill()


def test_links_are_links_whatever_they_lead_to() -> None:
    with e2b.Sandbox.create("base", timeout=60) as box:
        made = "mkdir -p l/dir && cd l && touch file && ln -s file to-file && ln -s dir to-dir && ln -s none broken"
        box.commands.run(made)
        for name in ("to-file", "to-dir", "broken"):
            assert box.files.get_info(f"l/{name}").type == e2b.FileType.SYMLINK, name
        types = {entry.name: entry.type for entry in box.files.list("l")}
        assert types == {
            "dir": e2b.FileType.DIR,
            "file": e2b.FileType.FILE,
            "to-file": e2b.FileType.SYMLINK,
            "to-dir": e2b.FileType.SYMLINK,
        }


# ---- a limit that no repeat changes ----


class Listening(Relay):
    """Remembers what it passes on."""

    seen = b""

    def _pass_on(self, ready: BaseSelector, end: socket.socket) -> None:
        with suppress(OSError):
            self.seen += end.recv(1 << 16, socket.MSG_PEEK)
        super()._pass_on(ready, end)


def test_a_create_over_the_limit_is_asked_for_once(wire: Wire, unique: str) -> None:
    team = cloche("team", "create", f"one-{unique}", "--boxes", "1")
    small = Wire(wire.url, cloche("key", "create", "for a test", "--team", team))
    first = small.create(timeout=60)
    port = urlsplit(wire.url).port
    assert port
    with Listening(port) as relay:
        url = f"http://127.0.0.1:{relay.port}"
        began = time.monotonic()
        with pytest.raises(e2b.RateLimitException):
            e2b.Sandbox.create("base", api_key=small.key, api_url=url, sandbox_url=url)
        assert time.monotonic() - began < 5
        assert relay.seen.count(b"POST /v2/sandboxes HTTP/1.1") == 1
    first.kill()


# ---- streamed input ----

STAMPING = (
    "python3 -uc 'import sys, time\n"
    'for line in sys.stdin: print(time.monotonic(), line.strip(), file=open("/tmp/stamps", "a"))\''
)


def test_chunks_arrive_when_they_are_sent() -> None:
    with e2b.Sandbox.create("base", timeout=60) as box:
        handle = box.commands.run(STAMPING, background=True, stdin=True)

        def spoken() -> Iterator[str]:
            yield "one\n"
            time.sleep(2)  # between the two
            yield "two\n"

        box.commands.stream_input(handle.pid, spoken())
        lines = eventually(lambda: len(got := box.files.read("/tmp/stamps").splitlines()) == 2 and got)
        (first, one), (second, two) = (line.split() for line in lines)
        assert (one, two) == ("one", "two")
        assert 1.5 < float(second) - float(first) < 4


def test_an_unknown_process_is_told_before_the_input_ends() -> None:
    over = threading.Event()

    def endless() -> Iterator[str]:
        yield "x"
        over.wait(30)
        yield "y"

    with e2b.Sandbox.create("base", timeout=60) as box:
        threading.Timer(10, over.set).start()
        began = time.monotonic()
        with pytest.raises(e2b.NotFoundException):
            box.commands.stream_input(999_999, endless())
        over.set()
        assert time.monotonic() - began < 15


def test_an_input_out_of_time_leaves_its_process_alive() -> None:
    with e2b.Sandbox.create("base", timeout=60) as box:
        handle = box.commands.run("cat", background=True, stdin=True)

        over = threading.Event()

        def slow() -> Iterator[str]:
            yield "x"
            over.wait(30)
            yield "y"

        with pytest.raises(e2b.TimeoutException):
            box.commands.stream_input(handle.pid, slow(), timeout=1)
        over.set()
        assert handle.pid in {process.pid for process in box.commands.list()}


# ---- a box that goes away in the middle of something ----


@contextmanager
def soon(leave: Callable[[], object]) -> Iterator[None]:
    """In the middle of what follows."""
    thread = threading.Timer(0.5, leave)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def waiting(box: e2b.Sandbox, leave: Callable[[], object]) -> None:
    handle = box.commands.run("sleep 100", background=True)
    with soon(leave):
        handle.wait()


class Slow(Relay):
    """A client with a thin line."""

    def _pass_on(self, ready: BaseSelector, end: socket.socket) -> None:
        time.sleep(0.01)  # for each 64 KiB at most
        super()._pass_on(ready, end)


def reading(box: e2b.Sandbox, leave: Callable[[], object]) -> None:
    box.commands.run(f"truncate -s {LARGE} /tmp/large")
    port = urlsplit(box.connection_config.api_url).port
    assert port
    with Slow(port) as relay:
        far = e2b.Sandbox.connect(box.sandbox_id, timeout=60, sandbox_url=f"http://127.0.0.1:{relay.port}")
        with soon(leave):
            far.files.read("/tmp/large", format="bytes")


def writing(box: e2b.Sandbox, leave: Callable[[], object]) -> None:
    def body() -> Iterator[bytes]:
        yield b"x" * SLICE
        leave()
        for _ in range(LARGE // SLICE):
            yield b"x" * SLICE

    box.files.write("/tmp/large", body())


def feeding(box: e2b.Sandbox, leave: Callable[[], object]) -> None:
    handle = box.commands.run("cat >/dev/null", background=True, stdin=True)
    over = threading.Event()

    def body() -> Iterator[str]:
        yield "one"
        leave()
        while not over.wait(0.1):  # the pace of somebody who types
            yield "more"

    try:
        box.commands.stream_input(handle.pid, body())
    finally:
        over.set()


def watching(box: e2b.Sandbox, leave: Callable[[], object]) -> None:
    """By the asynchronous client, whose watch is a stream."""

    async def watch() -> None:
        ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        watcher = await e2b.AsyncSandbox.connect(box.sandbox_id, timeout=60)
        await watcher.files.watch_dir("/tmp", on_event=lambda event: None, on_exit=ended.set_result, timeout=0)
        await asyncio.to_thread(leave)
        raise await asyncio.wait_for(ended, 30)

    asyncio.run(watch())


@pytest.mark.parametrize("how", ["kill", "pause"])
@pytest.mark.parametrize("work", [waiting, reading, writing, feeding, watching])
def test_whoever_is_in_the_middle_learns_that_the_box_does_not_run(work, how: str) -> None:
    box = e2b.Sandbox.create("base", timeout=60)
    other = e2b.Sandbox.connect(box.sandbox_id, timeout=60)
    try:
        with pytest.raises(e2b.SandboxNotRunningException) as caught:
            work(box, getattr(other, how))
        assert isinstance(caught.value, e2b.TimeoutException), "older programs catch this"
    finally:
        other.kill()


# ---- readers ----


def test_the_generated_client_reads_every_template() -> None:
    client = get_api_client(e2b.ConnectionConfig())
    defaults = get_default_templates.sync(client=client)
    assert {"base"} <= {name.split("/")[-1] for template in defaults for name in template.names}
    assert isinstance(get_templates.sync(client=client), list)
    assert get_v2_templates.sync(client=client) is not None
    for template in defaults:
        one = get_templates_template_id.sync(template.template_id, client=client)
        assert one.template_id == template.template_id
        assert all((one.build_id, one.cpu_count, one.memory_mb))
        assert get_templates_template_id_tags.sync(template.template_id, client=client)
    assert get_templates_aliases_alias.sync("base", client=client) is not None


def test_thirty_megabytes_over_http2_have_no_empty_frame(raw: RawBox) -> None:
    """The client's stack closes its connection after a hundred of them."""
    size = 30 << 20
    assert raw.run(f"head -c {size} /dev/urandom > /tmp/thirty")[0] == 0
    engine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    got, frames, over = 0, [], False
    with Tls().connect("localhost", "h2") as link:
        engine.initiate_connection()
        asked = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost")]
        asked += [(":path", "/files?path=/tmp/thirty&username=user")]
        asked += [(name.lower(), value) for name, value in raw.headers().items()]
        engine.send_headers(1, asked, end_stream=True)
        link.sendall(engine.data_to_send())
        while not over:
            data = link.recv(1 << 16)
            assert data, "the connection ended early"
            for event in engine.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    assert dict(event.headers)[b":status"] == b"200", event.headers
                elif isinstance(event, h2.events.DataReceived):
                    got += len(event.data)
                    frames.append((len(event.data), event.stream_ended is not None))
                    if event.flow_controlled_length:
                        engine.acknowledge_received_data(event.flow_controlled_length, 1)
                over |= isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
            link.sendall(engine.data_to_send())
    assert got == size
    assert [place for place, (length, last) in enumerate(frames) if not length and not last] == []
