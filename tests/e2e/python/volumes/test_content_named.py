# SPDX-License-Identifier: Apache-2.0
"""Uploads on filesystems that have no files without a name, with every upload synced before it is answered."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import no_tmpfile
from support.server import Server, own_server
from support.waiting import eventually
from volumes.test_content_faults import begin
from volumes.test_content_raw import Content, create, destroy


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    made.prefix = [sys.executable, no_tmpfile.__file__]
    with own_server("--pool", "0", "--volumes_backing", "directory", "--volume_sync", "1", made=made) as made:
        yield made


@pytest.fixture
def content(server: Server, unique: str) -> Iterator[Content]:
    made = create(server.wire, unique)
    yield made
    destroy(made)


def hidden(server: Server, content: Content) -> Path:
    return server.data / "volumes" / content.id / f"volume-{content.id}" / ".cloche-uploads"


def test_an_upload_appears_whole_and_leaves_nothing(server: Server, content: Content) -> None:
    link = begin(content, "/whole", 2_000_000)
    eventually(lambda: len(list(hidden(server, content).iterdir())) == 1)
    assert hidden(server, content).stat().st_mode & 0o777 == 0o700
    assert content.names() == []
    link.send(b"x" * 1_000_000)
    answer = link.getresponse()
    assert answer.status == 201, answer.read()
    assert content.stat("/whole").json()["size"] == 2_000_000
    assert not hidden(server, content).exists()
    assert content.put("/whole", b"again").status == 409
    assert content.put("/whole", b"again", "&force=true").status == 201
    assert content.call("GET", "file", "/whole").body == b"again"
    assert not hidden(server, content).exists()


def test_who_leaves_leaves_nothing(server: Server, content: Content) -> None:
    link = begin(content, "/half", 2_000_000)
    eventually(lambda: hidden(server, content).exists())
    link.close()
    eventually(lambda: not hidden(server, content).exists())
    assert content.names() == []


def test_many_at_once(server: Server, content: Content) -> None:
    """The end of one takes the hidden directory away that another is about to use."""

    def put(number: int) -> int:
        return content.put(f"/{number % 20}", b"x" * 1000, "&force=true").status

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(put, range(120))) == {201}
    assert len(content.names()) == 20
    assert not hidden(server, content).exists()


def test_something_else_of_that_name_gives_way(server: Server, content: Content) -> None:
    hidden(server, content).symlink_to("/etc")
    assert content.put("/a", b"1").status == 201
    assert content.call("GET", "file", "/a").body == b"1"
    assert not hidden(server, content).is_symlink()
