# SPDX-License-Identifier: Apache-2.0
"""Watching directories with asyncio: a task reads the stream, a callback gets the events."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Optional, Union

from .._core.connect import frame
from .._core.errors import FILE_RPC_ERRORS
from .._core.files import FilesystemEvent, read_event
from ..exceptions import SandboxException
from .envd import AsyncEvents
from .files import AsyncFilesBase
from .transport import notify

OnEvent = Union[Callable[[FilesystemEvent], Any], Callable[[FilesystemEvent], Awaitable[Any]]]
OnExit = Union[Callable[[Optional[Exception]], Any], Callable[[Optional[Exception]], Awaitable[Any]]]


class AsyncWatchHandle:
    """A watched directory."""

    def __init__(self, events: AsyncEvents, on_event: OnEvent, on_exit: Optional[OnExit] = None) -> None:
        self._events = events
        self._on_event = on_event
        self._on_exit = on_exit
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the watching."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._events.aclose()

    async def _exit(self, error: Optional[Exception]) -> None:
        try:
            await notify(self._on_exit, error)
        except Exception:
            # A callback that fails must not hide how the watching ended.
            pass

    async def _run(self) -> None:
        failure: Optional[Exception] = None
        try:
            async for message in self._events:
                event = read_event(message["filesystem"]) if "filesystem" in message else None
                if event is not None:
                    await notify(self._on_event, event)
        except asyncio.CancelledError:
            await self._exit(None)
            raise
        except Exception as error:
            failure = error
        await self._exit(failure)


class AsyncFilesystem(AsyncFilesBase):
    """Files of a sandbox."""

    async def watch_dir(
        self,
        path: str,
        on_event: OnEvent,
        on_exit: Optional[OnExit] = None,
        user: Optional[str] = None,
        request_timeout: Optional[float] = None,
        timeout: Optional[float] = 60,
        recursive: bool = False,
        include_entry: bool = False,
        allow_network_mounts: bool = False,
    ) -> AsyncWatchHandle:
        """Watch a directory. `timeout` is the whole time of the watching in seconds, 0 for no limit."""
        message = self._watch_message(path, recursive, include_entry, allow_network_mounts)
        events = await self._envd.open(
            "filesystem.Filesystem/WatchDir",
            frame(message),
            timeout,
            request_timeout,
            user=user,
            errors=FILE_RPC_ERRORS,
        )
        first = await self._first(events)
        if "start" not in first:
            await events.aclose()
            raise SandboxException(f"failed to watch {path}: the first event was not its start: {first}")
        return AsyncWatchHandle(events, on_event, on_exit)
