# SPDX-License-Identifier: Apache-2.0
"""Handles of running commands for asyncio: a task reads the output, callbacks get it as it comes."""

from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterator, Awaitable, Callable, Generic, Literal, Optional, Union, cast

from .._core.config import KEEPALIVE_SECONDS
from .._core.connect import frame
from .._core.process import CommandResult, Output, OutputT, Piece, PtyOutput, Stderr, Stdout, input_message, selector
from ..exceptions import SandboxException
from .envd import AsyncEnvd, AsyncEvents
from .transport import notify

Handler = Union[Callable[[Any], Any], Callable[[Any], Awaitable[Any]]]
InputKind = Literal["stdin", "pty"]


class AsyncCommandHandle(Generic[OutputT]):
    """A running command or terminal."""

    def __init__(
        self,
        pid: int,
        handle_kill: Callable[[], Awaitable[bool]],
        events: AsyncEvents,
        on_stdout: Optional[Handler] = None,
        on_stderr: Optional[Handler] = None,
        on_pty: Optional[Handler] = None,
        handle_send_stdin: Optional[Callable[[Union[str, bytes], Optional[float]], Awaitable[None]]] = None,
        handle_close_stdin: Optional[Callable[[Optional[float]], Awaitable[None]]] = None,
        retain_output: bool = True,
    ) -> None:
        self._pid = pid
        self._handle_kill = handle_kill
        self._handle_send_stdin = handle_send_stdin
        self._handle_close_stdin = handle_close_stdin
        self._events = events
        self._on_stdout = on_stdout
        self._on_stderr = on_stderr
        self._on_pty = on_pty
        self._output = Output(retain_output)
        self._failure: Optional[Exception] = None
        self._task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def stdout(self) -> OutputT:
        """The output so far, None when it is not retained."""
        return cast(OutputT, self._output.stdout)

    @property
    def stderr(self) -> OutputT:
        """The error output so far, None when it is not retained."""
        return cast(OutputT, self._output.stderr)

    @property
    def error(self) -> Optional[str]:
        return self._output.error

    @property
    def exit_code(self) -> Optional[int]:
        """None while the command runs."""
        return self._output.exit_code

    async def _pieces(self) -> AsyncIterator[Piece]:
        try:
            async for message in self._events:
                for piece in self._output.take(message):
                    yield piece
        except Exception:
            for piece in self._output.flush():
                yield piece
            raise
        for piece in self._output.flush():
            yield piece

    async def _run(self) -> None:
        try:
            async for stdout, stderr, pty in self._pieces():
                if stdout is not None:
                    await notify(self._on_stdout, stdout)
                elif stderr is not None:
                    await notify(self._on_stderr, stderr)
                elif pty is not None:
                    await notify(self._on_pty, pty)
        except Exception as error:
            self._failure = error

    async def wait(self) -> CommandResult[OutputT]:
        """Wait for the end; raises CommandExitException when the status is not 0."""
        await asyncio.shield(self._task)
        if self._failure is not None:
            raise self._failure
        return self._output.result()

    async def disconnect(self) -> None:
        """Stop receiving output; the command goes on."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._events.aclose()

    async def kill(self) -> bool:
        """End the command with SIGKILL; False if it has ended already."""
        return await self._handle_kill()

    async def send_stdin(self, data: Union[str, bytes], request_timeout: Optional[float] = None) -> None:
        """Write to the command's stdin; it must have been started with `stdin=True`."""
        if self._handle_send_stdin is None:
            raise SandboxException("this handle has no stdin; a terminal's is `pty.send_stdin`")
        await self._handle_send_stdin(data, request_timeout)

    async def close_stdin(self, request_timeout: Optional[float] = None) -> None:
        """Close the command's stdin, so that it reads end of file."""
        if self._handle_close_stdin is None:
            raise SandboxException("this handle has no stdin that can be closed")
        await self._handle_close_stdin(request_timeout)


class AsyncCommandInputHandle:
    """An open stream of input: `send` queues, `close` waits until the sandbox has taken all of it."""

    def __init__(self, envd: AsyncEnvd, pid: int, input_kind: InputKind, timeout: Optional[float]) -> None:
        self._envd = envd
        self._pid = pid
        self._kind = input_kind
        self._timeout = timeout
        self._queue: asyncio.Queue[Union[str, bytes, None]] = asyncio.Queue()
        self._closing = False
        self._failure: Optional[Exception] = None
        self._task = asyncio.create_task(self._run())

    async def send(self, data: Union[str, bytes]) -> None:
        """Queue input; raises what ended the stream, if something did."""
        if self._failure is not None:
            raise self._failure
        if self._closing or self._task.done():
            raise SandboxException("the input stream is closed; open another with `stream_input(pid)`")
        self._queue.put_nowait(data)

    async def close(self) -> None:
        """End the stream and wait until all of it has arrived. The process's stdin stays open."""
        if not self._closing:
            self._closing = True
            self._queue.put_nowait(None)
        await asyncio.shield(self._task)
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self) -> AsyncCommandInputHandle:
        return self

    async def __aexit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        try:
            await self.close()
        except Exception:
            if exc_value is None:
                raise

    async def _frames(self) -> AsyncIterator[bytes]:
        # The server ends the stream at its deadline, but what it says is read only when this side has ended too.
        deadline = time.monotonic() + self._timeout if self._timeout else None
        yield frame({"start": selector(self._pid)})
        while True:
            left = float(KEEPALIVE_SECONDS) if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return
            try:
                data = await asyncio.wait_for(self._queue.get(), min(left, KEEPALIVE_SECONDS))
            except asyncio.TimeoutError:
                yield frame({"keepalive": {}})
                continue
            if data is None:
                return
            yield frame({"data": input_message(self._kind, data)})

    async def _run(self) -> None:
        try:
            await stream_frames(self._envd, self._frames(), self._timeout)
        except Exception as error:
            self._failure = error


async def stream_frames(envd: AsyncEnvd, frames: AsyncIterator[bytes], timeout: Optional[float]) -> None:
    events = await envd.open("process.Process/StreamInput", frames, timeout, 0, silence=None)
    async for _ in events:
        pass


__all__ = ["AsyncCommandHandle", "AsyncCommandInputHandle", "Handler", "PtyOutput", "Stderr", "Stdout"]
