# SPDX-License-Identifier: Apache-2.0
"""Files of volumes with the stock Python clients."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator
from typing import Any

import e2b
import pytest
import pytest_asyncio
from e2b.exceptions import VolumeException, VolumePathNotFoundException

from support.either import Either


@pytest_asyncio.fixture(params=["sync", "async"])
async def volume(request: pytest.FixtureRequest, unique: str) -> AsyncIterator[Any]:
    kind = e2b.Volume if request.param == "sync" else e2b.AsyncVolume
    made = Either(kind).create(unique)
    made = Either(await made)
    yield made
    e2b.Volume.destroy(made.volume_id)


async def test_a_text_comes_back(volume: Any) -> None:
    info = await volume.write_file("/hello.txt", "Hello, wörld")
    assert (info.path, info.type.value, info.size, info.mode) == ("/hello.txt", "file", 13, 0o644)
    assert (info.uid, info.gid, info.name) == (0, 0, "hello.txt")
    assert await volume.read_file("/hello.txt") == "Hello, wörld"
    assert await volume.exists("/hello.txt")
    assert not await volume.exists("/other")


async def test_bytes_of_any_size_come_back(volume: Any) -> None:
    for size in (0, 1, 65536, (5 << 20) + 17):
        data = os.urandom(size)
        info = await volume.write_file(f"/data-{size}", data)
        assert info.size == size
        assert bytes(await volume.read_file(f"/data-{size}", format="bytes")) == data


async def test_open_files_are_streamed(volume: Any) -> None:
    data = os.urandom(3 << 20)
    assert (await volume.write_file("/binary", io.BytesIO(data))).size == len(data)
    assert bytes(await volume.read_file("/binary", format="bytes")) == data
    assert (await volume.write_file("/text", io.StringIO("ü" * 100000))).size == 200000


async def test_directories_and_what_is_in_them(volume: Any) -> None:
    made = await volume.make_dir("/a/b c", force=True, uid=1000, gid=1001, mode=0o750)
    assert (made.type.value, made.path, made.uid, made.gid, made.mode) == ("directory", "/a/b c", 1000, 1001, 0o750)
    await volume.write_file("/a/b c/file", b"x")
    assert [one.path for one in await volume.list("/")] == ["/a"]
    assert [one.path for one in await volume.list("/", depth=3)] == ["/a", "/a/b c", "/a/b c/file"]
    assert await volume.list("/a/b c/") != []
    with pytest.raises(VolumePathNotFoundException):
        await volume.list("/nowhere")
    with pytest.raises(VolumePathNotFoundException):
        await volume.make_dir("/x/y/z")
    with pytest.raises(VolumeException):
        await volume.make_dir("/a")


async def test_owner_and_mode_are_changed(volume: Any) -> None:
    await volume.write_file("/file", "x", uid=7, gid=8, mode=0o600)
    info = await volume.get_info("/file")
    assert (info.uid, info.gid, info.mode) == (7, 8, 0o600)
    info = await volume.update_metadata("/file", mode=0o444)
    assert (info.uid, info.gid, info.mode) == (7, 8, 0o444)
    info = await volume.update_metadata("/file", uid=1000, gid=1000)
    assert (info.uid, info.gid, info.mode) == (1000, 1000, 0o444)


async def test_overwriting_takes_force(volume: Any) -> None:
    await volume.write_file("/file", "one", uid=5, mode=0o600)
    with pytest.raises(VolumeException):
        await volume.write_file("/file", "two", force=False)
    info = await volume.write_file("/file", "three", force=True)
    assert (info.uid, info.mode, info.size) == (0, 0o644, 5)
    assert await volume.read_file("/file") == "three"


async def test_removing(volume: Any) -> None:
    await volume.make_dir("/a/b", force=True)
    await volume.write_file("/a/b/file", "x")
    await volume.remove("/a")
    assert not await volume.exists("/a")
    with pytest.raises(VolumePathNotFoundException):
        await volume.remove("/a")
