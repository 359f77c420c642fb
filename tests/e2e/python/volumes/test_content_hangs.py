# SPDX-License-Identifier: Apache-2.0
"""A content process that stands still, a filesystem that does, and trees that take long to remove."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.network_mount import NetworkMount, network_mounts
from support.server import Server, own_server
from support.tenants import two_teams
from support.waiting import eventually
from volumes.test_content_faults import begin
from volumes.test_content_raw import Content, create, destroy, fails


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def seconds(call: Callable[[], object]) -> float:
    before = time.monotonic()
    call()
    return time.monotonic() - before


# ---- the process ----


def test_a_content_process_that_hangs_is_replaced(server: Server, unique: str) -> None:
    content = create(server.wire, unique)
    assert content.put("/a", b"1").status == 201
    (pid,) = server.contents()
    with stopped(pid), ThreadPoolExecutor() as pool:
        waits = pool.submit(content.call, "GET", "file", "/a")
        # who does not need it does not wait
        assert seconds(lambda: server.wire.call("GET", "/volumes")) < 2
        assert seconds(lambda: server.wire.call("GET", "/v2/sandboxes")) < 2
        assert waits.result(40).body == b"1"
        eventually(lambda: pid not in server.contents())
    assert content.names() == ["/a"]
    destroy(content)


def test_an_upload_to_one_that_hangs_is_answered_with_503(server: Server, unique: str) -> None:
    content = create(server.wire, unique)
    link = begin(content, "/half", 2_000_000)
    (pid,) = server.contents()
    with stopped(pid):
        link.send(b"x" * 1_000_000)
        answer = link.getresponse()
        assert (answer.status, b"again" in answer.read()) == (503, True)
    assert content.names() == []
    destroy(content)


# ---- the filesystem ----


@pytest.fixture
def hanging() -> Iterator[tuple[Server, NetworkMount]]:
    with network_mounts() as (mount,), own_server(
        "--pool", "0", "--volumes_backing", "directory", "--volumes_dir", str(mount.at / "volumes"),
        "--volume_timeout_seconds", "2",
    ) as made:  # fmt: skip
        yield made, mount


def test_a_filesystem_that_hangs_is_told_and_delays_nobody_else(
    hanging: tuple[Server, NetworkMount], unique: str
) -> None:
    server, mount = hanging
    content = create(server.wire, unique)
    assert content.put("/kept", b"1").status == 201
    (pid,) = server.contents()
    link = begin(content, "/half", 200_000)
    mount.hang()
    mounts = {"templateID": "base", "timeout": 60, "volumeMounts": [{"name": unique, "path": "/mnt/v"}]}
    creates = ThreadPoolExecutor(20)
    try:
        stuck = [creates.submit(server.wire.call, "POST", "/sandboxes", mounts) for _ in range(20)]
        with ThreadPoolExecutor(16) as pool:
            waiting = [pool.submit(content.call, "DELETE", "path", "/kept") for _ in range(12)]
            waiting += [pool.submit(content.put, "/new", b"2")]
            assert seconds(lambda: server.wire.call("GET", "/volumes")) < 2
            assert seconds(lambda: server.wire.call("GET", "/v2/sandboxes")) < 2
            for one in waiting:
                assert "2 s (setting volume_timeout_seconds)" in fails(one.result(30), 503)
        assert server.contents() == [pid], "its loop works: nothing is gained by another one"
        plain = server.wire.call("POST", "/sandboxes", {"templateID": "base", "timeout": 60})
        assert plain.status == 201, plain.text
        assert not any(one.done() for one in stuck), "they wait for the filesystem, the plain one did not"
    finally:
        mount.go_on()
    assert all("volumes_unmapped" in one.result(60).text for one in stuck)
    creates.shutdown()
    eventually(lambda: content.stat("/").status == 200)
    link.send(b"x" * 100_000)
    assert link.getresponse().status in (201, 503)
    # what nobody waited for any more and had not begun was not done: of twelve at most eight had
    eventually(lambda: content.stat("/new").status == 404)
    assert {"/kept", "/half"} >= set(content.names())
    destroy(content)


# ---- large trees ----

FILES = 10_000
VOLUME_ROOT = 0xFFE00000


def fill(at: Path, n: int) -> None:
    """So many files, the cheap way: many names of one."""
    at.mkdir(parents=True)
    os.chown(at, VOLUME_ROOT, VOLUME_ROOT)
    for i in range(0, n, 2000):
        part = at / str(i)
        part.mkdir()
        (part / "0").touch()
        os.chown(part, VOLUME_ROOT, VOLUME_ROOT)
        os.chown(part / "0", VOLUME_ROOT, VOLUME_ROOT)
        for k in range(1, 2000):
            os.link(part / "0", part / str(k))


@pytest.fixture
def directories() -> Iterator[Server]:
    with own_server("--pool", "0", "--volumes_backing", "directory", "--team_volumes_mb", "0") as made:
        yield made


def test_ten_large_trees_of_one_team_delay_no_small_one_of_another(directories: Server, unique: str) -> None:
    teams = two_teams(directories)
    volumes = directories.data / "volumes"
    large = [create(teams.attacker, f"{unique}-{i}") for i in range(10)]
    for one in large:
        fill(volumes / one.id / f"volume-{one.id}" / "tree", FILES)
    small = create(teams.victim, unique)
    assert small.put("/one", b"1").status == 201
    for one in large:
        destroy(one)
    destroy(small)

    def left(one: Content) -> bool:
        return (volumes / one.id).exists() or (volumes / f".removed-{one.id}").exists()

    eventually(lambda: not left(small), 20, every=0.01)
    assert any(left(one) for one in large), "there was nothing to wait behind"
    eventually(lambda: not any(left(one) for one in large), 120)


def test_a_large_tree_that_was_left_does_not_delay_a_start(directories: Server, unique: str) -> None:
    server = directories
    volumes = server.data / "volumes"
    kept = create(server.wire, unique)
    assert kept.put("/a", b"1").status == 201
    server.signal(signal.SIGTERM)
    left = volumes / ".removed-00000000-0000-4000-8000-000000000000"
    fill(left, 80_000)
    server.start(*server.flags)
    assert left.exists(), "the server was ready only after it had removed everything"
    kept.wire = server.wire
    assert kept.call("GET", "file", "/a").body == b"1"
    eventually(lambda: not left.exists(), 120)
    destroy(kept)


def test_removals_by_the_api_take_turns(directories: Server, unique: str) -> None:
    teams = two_teams(directories)
    volumes = directories.data / "volumes"
    large, small = create(teams.attacker, unique), create(teams.victim, unique)
    for i in range(10):
        fill(volumes / large.id / f"volume-{large.id}" / str(i), FILES)
    assert small.put("/one", b"1").status == 201
    with ThreadPoolExecutor(10) as pool:
        going = [pool.submit(large.call, "DELETE", "path", f"/{i}") for i in range(10)]
        assert seconds(lambda: small.call("DELETE", "path", "/one")) < 5
        assert not all(one.done() for one in going), "there was nothing to wait behind"
        assert {(one.result(120).status, one.result().text) for one in going} <= {(204, "")}
    destroy(large)
    destroy(small)


def test_files_that_belong_to_the_host_are_refused_and_no_token_is_blamed(directories: Server, unique: str) -> None:
    """An operator may have put them there; the content process has no rights over them."""
    content = create(directories.wire, unique)
    at = directories.data / "volumes" / content.id / f"volume-{content.id}" / "kept"
    at.mkdir(mode=0o700)
    (at / "file").touch()
    fails(content.call("DELETE", "path", "/kept"), 403)
    fails(content.stat("/kept/file"), 403)
    assert (at / "file").exists()
    assert content.names() == ["/kept"]
    destroy(content)
