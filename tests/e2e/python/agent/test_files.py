# SPDX-License-Identifier: Apache-2.0
"""files: read and write, in every format and through both upload paths."""

from __future__ import annotations

import io

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException

from support.either import Either, collect

LARGE = "0123456789" * 23_000


async def test_text_comes_back_as_it_was_written(box: Either, unique: str) -> None:
    info = await box.files.write(f"{unique}.txt", "grüße\n漢字\x00end")
    assert (info.name, info.path) == (f"{unique}.txt", f"/home/user/{unique}.txt")
    assert info.type is FileType.FILE
    assert info.metadata is None
    assert await box.files.read(f"/home/user/{unique}.txt") == "grüße\n漢字\x00end"


@pytest.mark.parametrize("size", [0, 1, 65_536, 230_000])
async def test_bytes_and_streams_are_exact(box: Either, unique: str, size: int) -> None:
    content = bytes(i % 251 for i in range(size))
    await box.files.write(unique, content)
    assert bytes(await box.files.read(unique, format="bytes")) == content
    assert await collect(await box.files.read(unique, format="stream")) == content
    assert (await box.files.get_info(unique)).size == size


async def test_an_empty_file_reads_as_empty_text(box: Either, unique: str) -> None:
    await box.files.write(unique, "")
    assert await box.files.read(unique) == ""


async def test_missing_directories_are_made_and_owned_by_the_user(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}/a/b/c.txt", "deep")
    assert await box.files.read(f"/home/user/{unique}/a/b/c.txt") == "deep"
    info = await box.files.get_info(f"{unique}/a")
    assert (info.owner, info.group, info.mode) == ("user", "user", 0o755)


async def test_writing_again_truncates_and_keeps_the_mode(box: Either, unique: str) -> None:
    await box.files.write(unique, "a long first version")
    await box.commands.run(f"chmod 600 {unique}; ln {unique} {unique}.link")
    await box.files.write(unique, "short")
    assert await box.files.read(unique) == "short"
    assert await box.files.read(f"{unique}.link") == "short"
    assert (await box.files.get_info(unique)).mode == 0o600


async def test_io_objects_are_streamed(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}.bytes", io.BytesIO(LARGE.encode()))
    assert await box.files.read(f"{unique}.bytes") == LARGE
    await box.files.write(f"{unique}.text", io.StringIO("ünïcode " * 5000))
    assert await box.files.read(f"{unique}.text") == "ünïcode " * 5000


@pytest.mark.parametrize("octets", [True, False])
async def test_both_upload_paths_write_the_same(box: Either, unique: str, octets: bool) -> None:
    info = await box.files.write(unique, LARGE, use_octet_stream=octets)
    assert info.path == f"/home/user/{unique}"
    assert await box.files.read(unique) == LARGE


async def test_gzip_works_both_ways(box: Either, unique: str) -> None:
    await box.files.write(unique, LARGE, gzip=True)
    assert (await box.files.get_info(unique)).size == len(LARGE)
    assert await box.files.read(unique, gzip=True) == LARGE
    assert await box.files.read(unique) == LARGE


async def test_a_gzipped_stream_is_inflated(box: Either, unique: str) -> None:
    await box.files.write(unique, io.BytesIO(LARGE.encode()), gzip=True)
    assert bytes(await box.files.read(unique, format="bytes", gzip=True)) == LARGE.encode()


async def test_many_files_in_one_call_keep_their_order_and_paths(box: Either, unique: str) -> None:
    wanted = [
        {"path": f"{unique}/one.txt", "data": "1"},
        {"path": f"/{unique}/two.txt", "data": b"2"},
        {"path": f"{unique}/three & more.txt", "data": "3"},
    ]
    infos = await box.files.write_files(wanted)
    assert [info.path for info in infos] == [
        f"/home/user/{unique}/one.txt",
        f"/{unique}/two.txt",
        f"/home/user/{unique}/three & more.txt",
    ]
    for entry, info in zip(wanted, infos, strict=True):
        content = entry["data"] if isinstance(entry["data"], str) else entry["data"].decode()
        assert await box.files.read(info.path) == content
    assert await box.files.write_files([]) == []


async def test_the_user_decides_home_and_owner(box: Either, unique: str) -> None:
    info = await box.files.write(unique, "root's", user="root")
    assert info.path == f"/root/{unique}"
    assert (await box.files.get_info(f"/root/{unique}")).owner == "root"
    assert await box.files.read(unique, user="root") == "root's"
    assert await box.files.read(f"~/{unique}", user="root") == "root's"
    with pytest.raises(FileNotFoundException):
        await box.files.read(unique)


async def test_a_missing_file_names_its_path(box: Either, unique: str) -> None:
    with pytest.raises(FileNotFoundException, match=f"path '/home/user/{unique}' does not exist"):
        await box.files.read(unique)
    with pytest.raises(FileNotFoundException):
        await box.files.read(unique, format="stream")


async def test_a_directory_is_neither_read_nor_overwritten(box: Either) -> None:
    with pytest.raises(InvalidArgumentException, match="path '/home/user' is a directory"):
        await box.files.read("/home/user")
    with pytest.raises(InvalidArgumentException, match="is a directory"):
        await box.files.write("/home/user", "x")


async def test_proc_files_are_read_to_their_end(box: Either) -> None:
    assert "MemTotal" in await box.files.read("/proc/meminfo")
