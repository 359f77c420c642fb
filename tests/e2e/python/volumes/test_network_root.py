# SPDX-License-Identifier: Apache-2.0
"""Volumes in a directory that is a mounted network filesystem, shared by two servers."""

from __future__ import annotations

import errno
import re
import socket
import struct
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import e2b
import pytest

from support.network_mount import NetworkMount, network_mounts
from support.server import Server, binary, own_server
from support.tenants import cloche
from support.waiting import eventually
from volumes.test_content_raw import Content, create, destroy, fails


def flags(mount: NetworkMount) -> list[str]:
    return ["--pool", "0", "--volumes_backing", "directory", "--volumes_dir", str(mount.at / "volumes"),
            "--volumes_unmapped", "1"]  # fmt: skip


@pytest.fixture(scope="module")
def mounts() -> Iterator[list[NetworkMount]]:
    with network_mounts(2) as made:
        yield made


@pytest.fixture(scope="module")
def server(mounts: list[NetworkMount]) -> Iterator[Server]:
    with own_server(*flags(mounts[0])) as made:
        yield made


@pytest.fixture(scope="module")
def second(mounts: list[NetworkMount]) -> Iterator[Server]:
    with own_server(*flags(mounts[1])) as made:
        yield made


@pytest.fixture
def content(server: Server, unique: str) -> Iterator[Content]:
    made = create(server.wire, unique)
    yield made
    destroy(made)


def command(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary(), "volume", *words, "--data", str(server.data)], capture_output=True, text=True, check=False
    )


def box(server: Server, name: str) -> e2b.Sandbox:
    access = {"api_key": server.key, "api_url": server.url, "sandbox_url": server.url}
    return e2b.Sandbox.create(volume_mounts={"/mnt/shared": name}, **access)


def test_the_content_api_works_there(content: Content) -> None:
    assert content.call("POST", "dir", "/a/b", query="&force=true&uid=1000").status == 201
    big = bytes(range(256)) * 40_000
    assert content.put("/a/b/file", big, "&uid=1000&mode=384").status == 201
    told = content.stat("/a/b/file").json()
    assert (told["size"], told["uid"], told["mode"]) == (len(big), 1000, 0o600)
    assert content.call("GET", "file", "/a/b/file").body == big
    fails(content.put("/a/b/file", b"2"), 409)
    assert content.put("/a/b/file", b"2", "&force=true").status == 201
    assert content.call("GET", "file", "/a/b/file").body == b"2"
    assert content.names("/", "&depth=3") == ["/a", "/a/b", "/a/b/file"]
    assert content.call("DELETE", "path", "/a").status == 204
    assert content.names() == []


def test_boxes_of_one_server_share_it_and_watch_it(server: Server, content: Content, unique: str) -> None:
    one, other = box(server, unique), box(server, unique)
    try:
        one.files.write("/mnt/shared/from-one", "1")
        assert other.files.read("/mnt/shared/from-one") == "1"
        assert content.call("GET", "file", "/from-one").body == b"1"
        with pytest.raises(e2b.SandboxException, match="network"):
            other.files.watch_dir("/mnt/shared")
        watch = other.files.watch_dir("/mnt/shared", allow_network_mounts=True)
        one.files.write("/mnt/shared/seen", "1")
        seen: list[Any] = []
        eventually(lambda: seen.extend(watch.get_new_events()) or any(e.name == "seen" for e in seen), 20)
        watch.stop()
        assert other.commands.run("stat -c %U /mnt/shared/from-one").stdout.strip() == "nobody"
    finally:
        one.kill()
        other.kill()


def test_a_second_server_attaches_a_volume_and_both_see_its_files(
    server: Server, second: Server, content: Content, unique: str
) -> None:
    assert content.put("/from-first", b"1").status == 201
    attached = command(second, "attach", content.id, "theirs")
    assert attached.returncode == 0, attached.stderr
    told = second.wire.call("GET", f"/volumes/{content.id}").json()
    there = Content(second.wire, content.id, told["token"])
    assert (told["name"], there.call("GET", "file", "/from-first").body) == ("theirs", b"1")
    inside = box(second, "theirs")
    try:
        inside.files.write("/mnt/shared/from-second", "2")
        assert content.call("GET", "file", "/from-second").body == b"2"
        assert there.put("/by-api", b"3").status == 201
        assert content.call("GET", "file", "/by-api").body == b"3"
        assert there.wire.call("DELETE", f"/volumes/{content.id}").status == 409
    finally:
        inside.kill()
    # each server has tokens of its own
    fails(Content(second.wire, content.id, content.token).stat("/"), 401)
    destroy(there)
    assert second.wire.call("GET", f"/volumes/{content.id}").status == 404
    assert set(content.names()) == {"/by-api", "/from-first", "/from-second"}, "detached, not deleted"


@pytest.mark.parametrize("id", ["x", "00000000-0000-4000-8000-000000000000"])
def test_what_is_not_there_is_not_attached(second: Server, id: str) -> None:
    refused = command(second, "attach", id, "nothing")
    assert refused.returncode == 1
    assert id in refused.stderr
    assert second.wire.call("GET", "/volumes").json() == []


def test_a_volume_is_attached_once(second: Server, content: Content) -> None:
    assert command(second, "attach", content.id, "mine").returncode == 0
    again = command(second, "attach", content.id, "twice")
    assert again.returncode == 1
    assert content.id in again.stderr
    assert command(second, "rm", "mine").returncode == 0
    assert content.stat("/").status == 200


def forged_create(server: Server, id: str) -> int:
    """The status of the packet by which a gate has a volume made, with an id that is not drawn. See src/wire/wire.h."""
    team = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", cloche(server, "team", "list"))[0]
    packet = struct.pack("=IiQ", 240, 0, 1)
    for tag, text in ((1, id), (2, team), (3, "forged")):
        value = text.encode()
        packet += struct.pack("=II", tag, len(value)) + value + bytes(-len(value) % 8)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.connect(str(server.data / "warden.sock"))
        link.send(packet)
        return struct.unpack_from("=i", link.recv(65536), 4)[0]


def test_no_create_takes_files_that_are_there(second: Server, content: Content) -> None:
    """A gate that was taken over on one machine draws the id of another machine's volume."""
    assert forged_create(second, content.id) == -errno.EEXIST
    assert second.wire.call("GET", "/volumes").json() == []
    assert content.stat("/").status == 200
    other = str(uuid.uuid4())
    assert forged_create(second, other) == 0, "the packet itself is right"
    assert second.wire.call("DELETE", f"/volumes/{other}").status == 204
