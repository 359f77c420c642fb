# SPDX-License-Identifier: Apache-2.0
"""files: user metadata kept in extended attributes."""

from __future__ import annotations

import pytest
from e2b import InvalidArgumentException

from support.either import Either

SET_XATTR = "import os; os.setxattr({!r}, 'user.e2b.author', b'me')"


async def test_metadata_travels_with_the_file(box: Either, unique: str) -> None:
    written = await box.files.write(unique, "x", metadata={"Author": "me", "kind": "a b"})
    wanted = {"author": "me", "kind": "a b"}
    assert written.metadata == wanted
    assert (await box.files.get_info(unique)).metadata == wanted
    moved = await box.files.rename(unique, f"{unique}.d/new")
    assert moved.metadata == wanted
    assert [entry.metadata for entry in await box.files.list(f"{unique}.d")] == [wanted]


async def test_each_upload_replaces_the_whole_set(box: Either, unique: str) -> None:
    await box.files.write(unique, "x", metadata={"a": "1", "b": "2"})
    await box.files.write(unique, "x", metadata={"b": "3"})
    assert (await box.files.get_info(unique)).metadata == {"b": "3"}
    await box.files.write(unique, "x")
    assert (await box.files.get_info(unique)).metadata is None


async def test_octet_uploads_carry_metadata_too(box: Either, unique: str) -> None:
    written = await box.files.write(unique, "x", use_octet_stream=True, metadata={"a": "1"})
    assert written.metadata == {"a": "1"}


async def test_every_file_of_one_upload_gets_it(box: Either, unique: str) -> None:
    files = [{"path": f"{unique}.{n}", "data": "x"} for n in range(2)]
    written = await box.files.write_files(files, metadata={"a": "1"})
    assert [info.metadata for info in written] == [{"a": "1"}, {"a": "1"}]


async def test_an_attribute_set_inside_is_seen(box: Either, unique: str) -> None:
    path = f"/home/user/{unique}"
    await box.files.write(path, "x")
    await box.commands.run(f'python3 -c "{SET_XATTR.format(path)}"')
    assert (await box.files.get_info(path)).metadata == {"author": "me"}


async def test_too_much_metadata_is_refused_before_anything_is_written(
    box: Either, unique: str
) -> None:
    with pytest.raises(InvalidArgumentException, match="invalid metadata"):
        await box.files.write(unique, "x", metadata={"k": "v" * 4090})
    assert not await box.files.exists(unique)
