# SPDX-License-Identifier: Apache-2.0
"""files: information, listing, making, moving and removing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from e2b import (
    FileNotFoundException,
    FileType,
    InvalidArgumentException,
    SandboxException,
)

from support.either import Either


async def test_a_file_tells_everything_about_itself(box: Either, unique: str) -> None:
    await box.files.write(unique, "test")
    info = await box.files.get_info(unique)
    here = (await box.commands.run("pwd")).stdout.strip()
    assert (info.name, info.path) == (unique, f"{here}/{unique}")
    assert (info.type, info.size) == (FileType.FILE, 4)
    assert (info.mode, info.permissions) == (0o644, "-rw-r--r--")
    assert (info.owner, info.group) == ("user", "user")
    assert info.symlink_target is None
    assert info.metadata is None
    assert info.modified_time.tzinfo is not None
    assert abs((datetime.now(UTC) - info.modified_time).total_seconds()) < 30


async def test_a_directory_tells_everything_about_itself(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    info = await box.files.get_info(unique)
    assert (info.type, info.mode, info.permissions) == (FileType.DIR, 0o755, "drwxr-xr-x")
    assert info.size > 0


async def test_a_link_shows_its_target(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}.txt", "four")
    await box.commands.run(f"ln -s {unique}.txt {unique}.mid; ln -s {unique}.mid {unique}.end")
    info = await box.files.get_info(f"{unique}.end")
    assert (info.name, info.type) == (f"{unique}.end", FileType.SYMLINK)
    assert info.symlink_target == f"/home/user/{unique}.txt"
    assert info.permissions == "Lrwxrwxrwx"
    assert info.mode == 0o644


async def test_a_broken_link_can_be_looked_at(box: Either, unique: str) -> None:
    await box.commands.run(f"ln -s nowhere {unique}")
    info = await box.files.get_info(unique)
    assert info.type is FileType.SYMLINK
    assert info.symlink_target == f"/home/user/{unique}"
    assert info.mode == 0


@pytest.mark.parametrize(
    "prepare, permissions, mode",
    [
        ("touch {0}; chmod 4755 {0}", "urwxr-xr-x", 0o755),
        ("mkdir {0}; chmod 1777 {0}", "dtrwxrwxrwx", 0o777),
        ("touch {0}; chmod 000 {0}", "----------", 0),
        ("mkfifo -m 640 {0}", "prw-r-----", 0o640),
    ],
)
async def test_an_entry_tells_its_permissions_as_letters_and_as_mode(
    box: Either, unique: str, prepare: str, permissions: str, mode: int
) -> None:
    await box.commands.run(prepare.format(unique))
    info = await box.files.get_info(unique)
    assert (info.permissions, info.mode) == (permissions, mode)


async def test_a_device_has_its_own_letters(box: Either) -> None:
    assert (await box.files.get_info("/dev/null")).permissions == "Dcrw-rw-rw-"


async def test_nothing_there_is_a_file_not_found(box: Either, unique: str) -> None:
    with pytest.raises(FileNotFoundException):
        await box.files.get_info(unique)
    with pytest.raises(FileNotFoundException):
        await box.files.list(unique)
    with pytest.raises(FileNotFoundException):
        await box.files.rename(unique, f"{unique}.new")


async def test_exists_tells_whether_a_path_is_there(box: Either, unique: str) -> None:
    assert not await box.files.exists(unique)
    await box.files.write(unique, "x")
    assert await box.files.exists(unique)
    assert await box.files.exists("/home/user")
    assert not await box.files.exists(unique, user="root")


async def test_make_dir_says_whether_it_made_one(box: Either, unique: str) -> None:
    assert await box.files.make_dir(f"{unique}/a/b") is True
    assert await box.files.make_dir(f"{unique}/a/b") is False
    assert await box.files.make_dir(f"{unique}/a") is False
    await box.files.write(f"{unique}/file", "x")
    with pytest.raises(InvalidArgumentException):
        await box.files.make_dir(f"{unique}/file")


async def test_rename_moves_files_directories_and_links(box: Either, unique: str) -> None:
    await box.files.write(unique, "moved")
    info = await box.files.rename(unique, f"{unique}.d/e/new")
    assert (info.name, info.path) == ("new", f"/home/user/{unique}.d/e/new")
    assert info.type is FileType.FILE
    assert not await box.files.exists(unique)
    assert await box.files.read(f"{unique}.d/e/new") == "moved"
    await box.files.rename(f"{unique}.d", f"{unique}.f")
    assert await box.files.read(f"{unique}.f/e/new") == "moved"
    await box.commands.run(f"ln -s /etc/passwd {unique}.link")
    info = await box.files.rename(f"{unique}.link", f"{unique}.moved")
    assert info.symlink_target == "/etc/passwd"
    assert await box.files.exists("/etc/passwd")


async def test_rename_replaces_a_file_but_no_full_directory(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}.a", "a")
    await box.files.write(f"{unique}.b", "b")
    await box.files.rename(f"{unique}.a", f"{unique}.b")
    assert await box.files.read(f"{unique}.b") == "a"
    await box.files.write(f"{unique}.x/1", "1")
    await box.files.write(f"{unique}.y/2", "2")
    with pytest.raises(SandboxException):
        await box.files.rename(f"{unique}.x", f"{unique}.y")


async def test_remove_is_recursive_and_forgiving(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}/a/b/c", "x")
    await box.commands.run(f"ln -s /etc {unique}/etc")
    await box.files.remove(unique)
    assert not await box.files.exists(unique)
    assert await box.files.exists("/etc/passwd")
    await box.files.remove(unique)


async def test_list_has_depth_and_order(box: Either, unique: str) -> None:
    top = f"/home/user/{unique}"
    for name in ("subdir2/s2_2", "subdir2/s2_1", "subdir1/s1_2", "subdir1/s1_1"):
        await box.files.make_dir(f"{top}/{name}")
    await box.files.write(f"{top}/file1.txt", "x")

    async def names(**options: int) -> list[str]:
        entries = await box.files.list(top, **options)
        assert all(entry.name == entry.path.rsplit("/", 1)[1] for entry in entries)
        return [entry.path.removeprefix(f"{top}/") for entry in entries]

    shallow = ["file1.txt", "subdir1", "subdir2"]
    deep = [
        "file1.txt",
        "subdir1",
        "subdir1/s1_1",
        "subdir1/s1_2",
        "subdir2",
        "subdir2/s2_1",
        "subdir2/s2_2",
    ]
    assert await names() == shallow
    assert await names(depth=1) == shallow
    assert await names(depth=2) == deep
    assert await names(depth=3) == deep


async def test_list_sorts_by_bytes_and_drops_what_has_no_type(box: Either, unique: str) -> None:
    await box.commands.run(f"mkdir {unique}; cd {unique}; touch b B a-b a.b é; mkfifo pipe")
    assert [entry.name for entry in await box.files.list(unique)] == ["B", "a-b", "a.b", "b", "é"]


async def test_list_keeps_the_asked_prefix_through_a_link(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}/inner/file", "x")
    await box.commands.run(f"ln -s {unique} {unique}.link; ln -s inner {unique}/sub")
    entries = await box.files.list(f"{unique}.link", depth=2)
    assert [entry.path for entry in entries] == [
        f"/home/user/{unique}.link/inner",
        f"/home/user/{unique}.link/inner/file",
        f"/home/user/{unique}.link/sub",
    ]
    assert entries[2].type is FileType.SYMLINK


async def test_list_of_a_file_is_refused(box: Either, unique: str) -> None:
    await box.files.write(unique, "x")
    with pytest.raises(InvalidArgumentException):
        await box.files.list(unique)
    with pytest.raises(InvalidArgumentException):
        await box.files.list("/home/user", depth=-1)


async def test_a_cyclic_link_is_named_as_such(box: Either, unique: str) -> None:
    await box.commands.run(f"ln -s {unique} {unique}")
    with pytest.raises(SandboxException, match="cyclic symlink"):
        await box.files.list(unique)
