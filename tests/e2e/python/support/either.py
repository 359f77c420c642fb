# SPDX-License-Identifier: Apache-2.0
"""One face for the synchronous and the asynchronous SDK.

A test is written once, with `await`, and runs against both: Either wraps an SDK
object so that a synchronous method's answer can be awaited too. Handles that a
call returns are wrapped again; plain data stays plain.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

MODULES = {"files", "commands", "pty", "git"}
HANDLES = {
    "CommandHandle",
    "AsyncCommandHandle",
    "WatchHandle",
    "AsyncWatchHandle",
    "Sandbox",
    "AsyncSandbox",
}


def wrap(value: Any) -> Any:
    return Either(value) if type(value).__name__ in HANDLES else value


class Either:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def is_async(self) -> bool:
        return type(self.inner).__name__.startswith("Async")

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if name in MODULES:
            return Either(value)
        if not callable(value):
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
            return wrap(result)

        return call


async def collect(stream: Any) -> bytes:
    """All bytes of a streamed download, whichever kind of iterator it is."""
    if hasattr(stream, "__aiter__"):
        return b"".join([bytes(chunk) async for chunk in stream])
    return b"".join(bytes(chunk) for chunk in stream)


async def until(
    probe: Callable[[], Any | Awaitable[Any]], seconds: float = 60, every: float = 0.05
) -> Any:
    """The first true answer of probe; fails when none comes in time."""
    end = time.monotonic() + seconds
    while True:
        answer = probe()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"did not happen within {seconds} s: last answer {answer!r}")
        await asyncio.sleep(every)
