# SPDX-License-Identifier: Apache-2.0
"""files.watch_dir: the polled watcher of the sync SDK and the stream of the async one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from e2b import (
    FileNotFoundException,
    FilesystemEvent,
    FilesystemEventType,
    FileType,
    SandboxException,
)

from support.either import Either, until

CREATE, WRITE, CHMOD = (
    FilesystemEventType.CREATE,
    FilesystemEventType.WRITE,
    FilesystemEventType.CHMOD,
)
REMOVE, RENAME = FilesystemEventType.REMOVE, FilesystemEventType.RENAME


class Watch:
    """Events so far, from either kind of watcher."""

    def __init__(self) -> None:
        self.seen: list[FilesystemEvent] = []
        self.poll: Either | None = None

    async def events(self, wanted: int) -> list[FilesystemEvent]:
        """What was seen once `wanted` events are there and nothing more comes."""

        async def enough() -> bool:
            if self.poll is not None:
                self.seen += await self.poll.get_new_events()
            return len(self.seen) >= wanted

        await until(enough)
        await asyncio.sleep(0.15)  # one event too many has this long to come
        if self.poll is not None:
            self.seen += await self.poll.get_new_events()
        return self.seen

    async def pairs(self, wanted: int) -> list[tuple[FilesystemEventType, str]]:
        return [(event.type, event.name) for event in await self.events(wanted)]


@asynccontextmanager
async def watching(box: Either, path: str, **options: bool) -> AsyncIterator[Watch]:
    watch = Watch()
    if box.is_async:
        handle = await box.files.watch_dir(path, on_event=watch.seen.append, **options)
    else:
        handle = watch.poll = await box.files.watch_dir(path, **options)
    try:
        yield watch
    finally:
        await handle.stop()


async def test_a_new_file_uploaded_gives_exactly_three_events(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique) as watch:
        await box.files.write(f"{unique}/new.txt", "content")
        assert await watch.pairs(3) == [(CREATE, "new.txt"), (CHMOD, "new.txt"), (WRITE, "new.txt")]


async def test_overwriting_is_seen_as_a_write(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}/old.txt", "before")
    async with watching(box, unique) as watch:
        await box.files.write(f"{unique}/old.txt", "after")
        pairs = await watch.pairs(2)
    assert (WRITE, "old.txt") in pairs
    assert {name for _, name in pairs} == {"old.txt"}
    assert CREATE not in {kind for kind, _ in pairs}


async def test_remove_rename_and_chmod(box: Either, unique: str) -> None:
    await box.commands.run(f"mkdir {unique}; cd {unique}; touch a b c")
    async with watching(box, unique) as watch:
        await box.commands.run(f"cd {unique}; rm a; mv b d; chmod 600 c")
        assert await watch.pairs(4) == [
            (REMOVE, "a"),
            (RENAME, "b"),
            (CREATE, "d"),
            (CHMOD, "c"),
        ]


async def test_only_the_directory_itself_unless_recursive(box: Either, unique: str) -> None:
    await box.files.write(f"{unique}/nested/file.txt", "x")
    async with watching(box, unique) as watch:
        await box.files.write(f"{unique}/nested/file.txt", "y")
        await box.files.write(f"{unique}/seen", "y")
        pairs = await watch.pairs(3)
    assert {name for _, name in pairs} == {"seen"}


async def test_recursive_names_are_relative(box: Either, unique: str) -> None:
    await box.files.make_dir(f"{unique}/nested")
    async with watching(box, unique, recursive=True) as watch:
        await box.files.write(f"{unique}/nested/new.txt", "x")
        assert await watch.pairs(3) == [
            (CREATE, "nested/new.txt"),
            (CHMOD, "nested/new.txt"),
            (WRITE, "nested/new.txt"),
        ]


async def test_a_directory_made_later_is_watched_too(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique, recursive=True) as watch:
        await box.files.make_dir(f"{unique}/later")
        assert (CREATE, "later") in await watch.pairs(1)
        await box.files.write(f"{unique}/later/file", "x")
        pairs = await watch.pairs(4)
    assert (CREATE, "later/file") in pairs
    assert (WRITE, "later/file") in pairs


async def test_a_tree_made_at_once_is_seen_to_its_leaves(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique, recursive=True) as watch:
        await box.commands.run(f"cd {unique}; mkdir -p a/b/c; touch a/b/c/leaf")
        pairs = await watch.pairs(4)
    created = {name for kind, name in pairs if kind is CREATE}
    assert {"a", "a/b", "a/b/c", "a/b/c/leaf"} <= created


async def test_events_carry_the_entry_when_asked(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique, include_entry=True) as watch:
        await box.files.write(f"{unique}/file.txt", "x")
        await watch.events(3)
        await box.files.remove(f"{unique}/file.txt")
        events = await watch.events(4)
    write = next(event for event in events if event.type is WRITE)
    assert write.entry.name == "file.txt"
    assert write.entry.path == f"/home/user/{unique}/file.txt"
    assert write.entry.type is FileType.FILE
    removed = next(event for event in events if event.type is REMOVE)
    assert removed.entry is None


async def test_events_carry_no_entry_unless_asked(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique) as watch:
        await box.files.write(f"{unique}/file.txt", "x")
        assert {event.entry for event in await watch.events(3)} == {None}


async def test_only_directories_that_exist_can_be_watched(box: Either, unique: str) -> None:
    with pytest.raises(FileNotFoundException):
        async with watching(box, unique):
            pass
    await box.files.write(unique, "a file")
    with pytest.raises(SandboxException):
        async with watching(box, unique):
            pass


async def test_after_stop_nothing_more_comes(box: Either, unique: str) -> None:
    await box.files.make_dir(unique)
    async with watching(box, unique) as watch:
        await box.files.write(f"{unique}/a", "x")
        before = len(await watch.events(3))
    watch.poll = None
    await box.files.write(f"{unique}/b", "x")
    await asyncio.sleep(0.3)  # an event that must not come has this long to come
    assert len(watch.seen) == before
