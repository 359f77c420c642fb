# SPDX-License-Identifier: Apache-2.0
"""The content API while processes of the server die: nothing is lost, nothing is half."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, own_server
from support.waiting import eventually
from volumes.test_content_raw import Content, create, destroy

SIZES = [2_000_000, 40_000_000]  # as bytes come; taken from the socket by a thread


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--pool", "0") as made:
        yield made


@pytest.fixture
def content(server: Server, unique: str) -> Iterator[Content]:
    made = create(server.wire, unique)
    yield made
    destroy(made)


def begin(content: Content, path: str, size: int) -> http.client.HTTPConnection:
    """An upload of which half is sent."""
    link = content.wire.connect()
    link.putrequest("PUT", f"/volumecontent/{content.id}/file?path={path}")
    link.putheader("Authorization", f"Bearer {content.token}")
    link.putheader("Content-Length", str(size))
    link.endheaders()
    link.send(b"x" * (size // 2))
    time.sleep(0.2)  # its first half arrives
    return link


def is_nameless(descriptor: Path) -> bool:
    try:
        return descriptor.stat().st_nlink == 0 and descriptor.is_file()
    except FileNotFoundError:
        return False


def kill(pids: list[int]) -> None:
    assert len(pids) == 1
    os.kill(pids[0], signal.SIGKILL)


def test_the_content_process_has_no_rights_beyond_volumes(server: Server) -> None:
    (pid,) = server.contents()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["Uid"].split() == [str(0xFFE00000)] * 4
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0b11111
    assert int(status["CapBnd"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert Path(f"/proc/{pid}/ns/user").readlink() != Path("/proc/self/ns/user").readlink()
    assert list(Path(f"/proc/{pid}/root").iterdir()) == []


def test_requests_survive_a_killed_content_process(server: Server, content: Content) -> None:
    assert content.put("/a", b"1").status == 201
    for _ in range(3):
        kill(server.contents())
        assert content.call("GET", "file", "/a").body == b"1"
        assert content.names() == ["/a"]


@pytest.mark.parametrize("size", SIZES)
def test_an_upload_during_its_death_is_refused_and_leaves_nothing(server: Server, content: Content, size: int) -> None:
    link = begin(content, "/half", size)
    kill(server.contents())
    link.send(b"x" * (size // 2))
    answer = link.getresponse()
    assert (answer.status, b"again" in answer.read()) == (503, True)
    assert content.names() == []
    assert content.put("/half", b"whole").status == 201


@pytest.mark.parametrize("size", SIZES)
def test_an_upload_outlives_the_warden(server: Server, content: Content, size: int) -> None:
    link = begin(content, "/whole", size)
    kill(server.wardens())
    link.send(b"x" * (size // 2))
    answer = link.getresponse()
    assert answer.status == 201, answer.read()
    assert content.stat("/whole").json()["size"] == size


@pytest.mark.parametrize("size", SIZES)
def test_a_dead_gate_leaves_nothing(server: Server, content: Content, size: int) -> None:
    before = len(server.gates())
    begin(content, "/half", size)
    for pid in server.gates():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(server.gates()) == before)
    eventually(lambda: content.stat("/").status == 200)
    assert content.names() == []


def test_a_volume_deleted_during_an_upload_delays_nobody(server: Server, unique: str) -> None:
    doomed, other = create(server.wire, unique), create(server.wire, f"{unique}-other")
    place = Path(server.data) / "volumes" / doomed.id
    link = begin(doomed, "/half", 2_000_000)
    destroy(doomed)
    (pid,) = server.contents()
    fds = Path(f"/proc/{pid}/fd")
    # the gate has it still, which waits for its client
    eventually(lambda: not any(is_nameless(one) for one in fds.iterdir()), 20)
    before = time.monotonic()
    for i in range(5):
        assert other.put(f"/{i}", b"x").status == 201
    assert time.monotonic() - before < 8  # one wait for the doomed volume was 10 seconds
    link.close()
    eventually(lambda: not place.exists(), 30)
    destroy(other)


def test_writers_and_killers_at_once(server: Server, content: Content) -> None:
    """Whatever dies in between: a file is there whole or not at all."""
    over = threading.Event()
    stored: set[str] = set()

    def write(number: int) -> None:
        for i in range(1000):
            if over.is_set():
                return
            path = f"/{number}-{i}"
            try:
                if content.put(path, b"%d" % number * 300_000).status == 201:
                    stored.add(path)
            except (ConnectionError, http.client.HTTPException, TimeoutError):
                pass

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for one in threads:
        one.start()
    for kind in (server.contents, server.wardens, server.contents):
        time.sleep(0.7)  # some uploads begin and end
        eventually(lambda kind=kind: len(kind()) == 1)
        kill(kind())
    time.sleep(0.7)  # some uploads begin and end
    over.set()
    for one in threads:
        one.join()
    told = content.call("GET", "dir", "/").json()
    assert {one["size"] for one in told} == {300_000}
    assert stored <= {one["path"] for one in told}
