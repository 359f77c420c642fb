# SPDX-License-Identifier: Apache-2.0
"""cloche volume: list, create, cp, du, backup, restore, rm."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, binary, own_server
from support.tenants import cloche, two_teams
from volumes.test_content_raw import Content, create, destroy


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--pool", "0") as made:
        yield made


@pytest.fixture
def content(server: Server, unique: str) -> Iterator[Content]:
    made = create(server.wire, unique)
    yield made
    destroy(made)


def refused(server: Server, *words: str) -> str:
    done = subprocess.run([binary(), *words], capture_output=True, text=True, timeout=30, check=False,
                          env=os.environ | {"CLOCHE_DATA": str(server.data)})  # fmt: skip
    assert done.returncode == 1
    return done.stderr


def test_create_list_and_rm(server: Server, unique: str) -> None:
    made = cloche(server, "volume", "create", unique)
    assert made in [one["volumeID"] for one in server.wire.call("GET", "/volumes").json()]
    assert unique in cloche(server, "volume", "list")
    assert "already" in refused(server, "volume", "create", unique)
    assert "letters" in refused(server, "volume", "create", "a/b")
    cloche(server, "volume", "rm", unique)
    assert unique in refused(server, "volume", "rm", unique)
    assert unique not in cloche(server, "volume", "list")


def test_another_team_is_named(server: Server, content: Content, unique: str) -> None:
    team = cloche(server, "team", "create", "Other")
    assert "no volume" in refused(server, "volume", "du", unique, "--team", team)
    two_teams(server)


def test_cp_both_ways(server: Server, content: Content, unique: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_bytes(os.urandom(3 << 20))
    (tree / "link").symlink_to("sub/file")
    (tree / "empty").touch()
    (tree / "empty").chmod(0o640)
    cloche(server, "volume", "cp", str(tree), f"{unique}:/")
    assert content.names("/", "&depth=9") == ["/tree", "/tree/empty", "/tree/link", "/tree/sub", "/tree/sub/file"]
    assert content.stat("/tree/link").json()["target"] == "sub/file"
    assert content.stat("/tree/empty").json()["mode"] == 0o640
    cloche(server, "volume", "cp", f"{unique}:/tree", str(tmp_path / "back"))
    assert (tmp_path / "back/sub/file").read_bytes() == (tree / "sub/file").read_bytes()
    assert (tmp_path / "back/link").readlink() == Path("sub/file")
    cloche(server, "volume", "cp", str(tree / "sub/file"), f"{unique}:/one")
    cloche(server, "volume", "cp", f"{unique}:/one", str(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == (tree / "sub/file").read_bytes()
    assert "no" in refused(server, "volume", "cp", f"{unique}:/none", str(tmp_path / "x"))
    assert "one of the two" in refused(server, "volume", "cp", "a", "b")


def test_backup_and_restore(server: Server, content: Content, unique: str, tmp_path: Path) -> None:
    content.call("POST", "dir", "/a/b", query="&force=true&uid=7&gid=8&mode=448")
    content.put("/a/b/file", b"x" * 100_000, "&uid=1000&gid=1001&mode=416")
    content.put("/ä ö", b"")
    headers = {"Authorization": f"Bearer {content.token}"}
    raw = f"/volumecontent/{content.id}/file?path=%2Fbad-%FF"
    assert content.wire.call("PUT", raw, b"bytes", headers).status == 201
    archive = tmp_path / "all.tar"
    cloche(server, "volume", "backup", unique, str(archive))
    with tarfile.open(archive, errors="surrogateescape") as tar:
        entry = tar.getmember("a/b/file")
        assert (entry.uid, entry.gid, entry.mode, entry.size) == (1000, 1001, 0o640, 100_000)
    cloche(server, "volume", "create", unique + "-b")
    cloche(server, "volume", "restore", unique + "-b", str(archive))
    (other,) = [one for one in server.wire.call("GET", "/volumes").json() if one["name"] == unique + "-b"]
    told = server.wire.call("GET", f"/volumes/{other['volumeID']}").json()
    back = Content(server.wire, told["volumeID"], told["token"])
    keys = ("path", "type", "size", "mode", "uid", "gid")

    def shape(of: Content) -> list[tuple[object, ...]]:
        return [tuple(one[key] for key in keys) for one in of.call("GET", "dir", "/", query="&depth=9").json()]

    assert shape(back) == shape(content)
    before, after = content.stat("/a/b/file").json(), back.stat("/a/b/file").json()
    assert before["mtime"][:19] == after["mtime"][:19]
    assert back.wire.call("GET", raw.replace(content.id, back.id), None,
                          {"Authorization": f"Bearer {back.token}"}).body == b"bytes"  # fmt: skip
    (tmp_path / "cut.tar").write_bytes(archive.read_bytes()[:60_000])
    refused(server, "volume", "restore", unique + "-b", str(tmp_path / "cut.tar"))
    assert back.call("GET", "file", "/a/b/file").body == b"x" * 100_000
    cloche(server, "volume", "rm", unique + "-b")


def test_files_that_are_mostly_holes_take_no_room(
    server: Server, content: Content, unique: str, tmp_path: Path
) -> None:
    """A sandbox may say that a file is a thousand times as long as its volume; no disk is filled with it."""
    size = 8 << 40
    with (tmp_path / "long").open("wb") as f:
        f.write(b"first")
        f.truncate(size)
        f.seek(1 << 40)
        f.write(b"middle")
    cloche(server, "volume", "cp", str(tmp_path / "long"), f"{unique}:/long")
    assert content.stat("/long").json()["size"] == size
    assert float(cloche(server, "volume", "du", unique).split()[0]) < 16
    cloche(server, "volume", "cp", f"{unique}:/long", str(tmp_path / "back"))
    archive = tmp_path / "all.tar"
    cloche(server, "volume", "backup", unique, str(archive))
    for made in (tmp_path / "back", archive):
        assert made.stat().st_size >= size
        assert made.stat().st_blocks * 512 < 1 << 20
    with (tmp_path / "back").open("rb") as f:
        assert f.read(6) == b"first\0"
        f.seek(1 << 40)
        assert f.read(7) == b"middle\0"
    with tarfile.open(archive) as tar:
        assert tar.getmember("long").size == size


def test_zeros_of_an_archive_become_holes(server: Server, content: Content, unique: str, tmp_path: Path) -> None:
    content.put("/zeros", b"\0" * (40 << 20) + b"end" + b"\0" * (8 << 20))
    cloche(server, "volume", "backup", unique, str(tmp_path / "all.tar"))
    cloche(server, "volume", "restore", unique, str(tmp_path / "all.tar"))
    body = content.call("GET", "file", "/zeros").body
    assert len(body) == (48 << 20) + 3
    assert body.strip(b"\0") == b"end"
    assert float(cloche(server, "volume", "du", unique).split()[0]) < 20


def test_what_a_sandbox_chose_opens_nothing_of_the_host(
    server: Server, content: Content, unique: str, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir(mode=0o700)
    assert content.call("PATCH", "path", "/", {"mode": 0o777}).status == 200
    content.put("/all", b"x", "&mode=511")
    content.call("POST", "dir", "/open", query="&mode=511")
    cloche(server, "volume", "cp", f"{unique}:/", str(here))
    modes = [path.stat().st_mode & 0o7777 for path in (here, here / "all", here / "open")]
    assert modes == [0o700, 0o755, 0o755]
    said = refused(server, "volume", "cp", f"{unique}:/a\x1b[2Jc", str(here))
    assert "\x1b" not in said
    assert "?[2Jc" in said


def test_du(server: Server, content: Content, unique: str) -> None:
    content.put("/file", b"x" * (5 << 20))
    told = cloche(server, "volume", "du", unique)
    assert unique in told
    assert float(told.split()[0]) >= 5
