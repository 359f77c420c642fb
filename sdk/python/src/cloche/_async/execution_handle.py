# SPDX-License-Identifier: Apache-2.0
"""Handles of running code for asyncio: a task reads the output, callbacks and iterators get it as it comes."""

from __future__ import annotations

import asyncio
from typing import AsyncIterator, List, Optional

from .._core.execution import Event
from ..models import Execution
from .code import AsyncCallbacks, AsyncCode, AsyncRun


class AsyncExecutionHandle:
    """Code that runs. `async for` gives its output, results and error as they come."""

    def __init__(self, code: AsyncCode, run: AsyncRun, callbacks: AsyncCallbacks) -> None:
        self._code = code
        self._run = run
        self._callbacks = callbacks
        self._seen: List[Event] = []
        self._failure: Optional[Exception] = None
        self._news = asyncio.Condition()
        self._ended = False
        self._task = asyncio.create_task(self._read())

    @property
    def id(self) -> Optional[str]:
        """The server's name of this execution, None if it has none."""
        return self._run.id

    @property
    def execution(self) -> Execution:
        """What has come so far."""
        return self._run.execution

    async def _read(self) -> None:
        try:
            async for event in self._run.events():
                await self._callbacks.show(event)
                async with self._news:
                    self._seen.append(event)
                    self._news.notify_all()
        except Exception as error:
            self._failure = error
        finally:
            async with self._news:
                self._ended = True
                self._news.notify_all()

    async def __aiter__(self) -> AsyncIterator[Event]:
        at = 0
        while True:
            async with self._news:
                while not self._ended and len(self._seen) == at:
                    await self._news.wait()
                fresh = self._seen[at:]
            if not fresh:
                break
            for event in fresh:
                yield event
            at += len(fresh)
        if self._failure is not None:
            raise self._failure

    async def wait(self) -> Execution:
        """Wait for the end and give the whole execution."""
        await asyncio.shield(self._task)
        if self._failure is not None:
            raise self._failure
        return self._run.execution

    async def interrupt(self, request_timeout: Optional[float] = None) -> bool:
        """Stop the code as Ctrl-C does; its context lives on. False if it has ended already."""
        return await self._code.interrupt(None, None, self.id, request_timeout)

    async def disconnect(self) -> None:
        """Stop receiving output."""
        await self._run.aclose()
        await asyncio.wait([self._task])
