# SPDX-License-Identifier: Apache-2.0
"""Running commands and terminals for asyncio."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, Literal, Optional, TypeVar, Union, overload

from .._core.connect import frame
from .._core.process import (
    PRIVATE_ENV,
    PTY_ENVS,
    CommandResult,
    PtyOutput,
    PtySize,
    Stderr,
    Stdout,
    Username,
    selector,
    size_message,
    start_message,
    start_pid,
)
from .command_handle import AsyncCommandHandle, AsyncCommandInputHandle
from .commands import AsyncCommandsBase
from .envd import AsyncEvents
from .pty import AsyncPtyBase

T = TypeVar("T")
Handler = Union[Callable[[T], Any], Callable[[T], Awaitable[Any]]]


class AsyncCommands(AsyncCommandsBase):
    """Commands of a sandbox."""

    @overload
    async def run(
        self,
        cmd: str,
        background: Optional[Literal[False]] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[False],
    ) -> CommandResult[None]: ...

    @overload
    async def run(
        self,
        cmd: str,
        background: Optional[Literal[False]] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[True] = True,
    ) -> CommandResult[str]: ...

    @overload
    async def run(
        self,
        cmd: str,
        background: Optional[Literal[False]] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: bool,
    ) -> CommandResult[Any]: ...

    @overload
    async def run(
        self,
        cmd: str,
        background: Literal[True],
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[False],
    ) -> AsyncCommandHandle[None]: ...

    @overload
    async def run(
        self,
        cmd: str,
        background: Literal[True],
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[True] = True,
    ) -> AsyncCommandHandle[str]: ...

    @overload
    async def run(
        self,
        cmd: str,
        background: Literal[True],
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: bool,
    ) -> AsyncCommandHandle[Any]: ...

    async def run(
        self,
        cmd: str,
        background: Optional[bool] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: bool = True,
    ) -> Any:
        """Run a command in a login shell.

        Waits for its end, and raises CommandExitException when its status is not 0; with `background` gives a handle
        at once. `timeout` is the command's whole time in seconds, after which the sandbox kills it; `request_timeout`
        limits how long the start may take. 0 means no limit. Variables in `envs` show in no list of processes.
        """
        events = await self._envd.open(
            "process.Process/Start",
            frame(start_message(["-l", "-c", cmd], envs, cwd, stdin=bool(stdin))),
            timeout,
            request_timeout,
            headers=PRIVATE_ENV if envs else None,
            user=user,
        )
        handle = await self._handle(events, "start the command", on_stdout, on_stderr, retain_output)
        return handle if background else await handle.wait()

    @overload
    async def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        *,
        retain_output: Literal[False],
    ) -> AsyncCommandHandle[None]: ...

    @overload
    async def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        *,
        retain_output: Literal[True] = True,
    ) -> AsyncCommandHandle[str]: ...

    @overload
    async def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        *,
        retain_output: bool,
    ) -> AsyncCommandHandle[Any]: ...

    async def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        on_stdout: Optional[Handler[Stdout]] = None,
        on_stderr: Optional[Handler[Stderr]] = None,
        *,
        retain_output: bool = True,
    ) -> Any:
        """A handle of a command that runs already. `timeout` ends the handle's stream, not the command."""
        events = await self._envd.open(
            "process.Process/Connect", frame(selector(pid)), timeout, request_timeout
        )
        return await self._handle(events, "connect to the command", on_stdout, on_stderr, retain_output)

    async def _handle(
        self,
        events: AsyncEvents,
        action: str,
        on_stdout: Optional[Handler[Stdout]],
        on_stderr: Optional[Handler[Stderr]],
        retain_output: bool,
    ) -> AsyncCommandHandle[Any]:
        pid = start_pid(await events.first(), action)
        return AsyncCommandHandle(
            pid,
            lambda: self.kill(pid),
            events,
            on_stdout,
            on_stderr,
            handle_send_stdin=lambda data, timeout: self.send_stdin(pid, data, timeout),
            handle_close_stdin=lambda timeout: self.close_stdin(pid, timeout),
            retain_output=retain_output,
        )

    def stream_input(self, pid: int, *, timeout: Optional[float] = 60.0) -> AsyncCommandInputHandle:
        """An open stream to a command's stdin. `timeout` is the stream's whole time, 0 or None for no limit."""
        return AsyncCommandInputHandle(self._envd, pid, "stdin", timeout)


class AsyncPty(AsyncPtyBase):
    """Terminals of a sandbox."""

    async def create(
        self,
        size: PtySize,
        on_data: Handler[PtyOutput],
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
    ) -> AsyncCommandHandle[Any]:
        """Start a login shell in a terminal. `timeout` is its whole time in seconds, 0 for no limit."""
        message = start_message(["-i", "-l"], {**PTY_ENVS, **(envs or {})}, cwd, pty=size_message(size))
        events = await self._envd.open(
            "process.Process/Start",
            frame(message),
            timeout,
            request_timeout,
            headers=PRIVATE_ENV if envs else None,
            user=user,
        )
        return await self._handle(events, "start the terminal", on_data)

    async def connect(
        self,
        pid: int,
        on_data: Handler[PtyOutput],
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
    ) -> AsyncCommandHandle[Any]:
        """A handle of a terminal that runs already. `timeout` ends the handle's stream, not the terminal."""
        events = await self._envd.open("process.Process/Connect", frame(selector(pid)), timeout, request_timeout)
        return await self._handle(events, "connect to the terminal", on_data)

    async def _handle(
        self, events: AsyncEvents, action: str, on_data: Handler[PtyOutput]
    ) -> AsyncCommandHandle[Any]:
        pid = start_pid(await events.first(), action)
        return AsyncCommandHandle(pid, lambda: self.kill(pid), events, on_pty=on_data)

    def stream_input(self, pid: int, *, timeout: Optional[float] = 60.0) -> AsyncCommandInputHandle:
        """An open stream to a terminal. `timeout` is the stream's whole time, 0 or None for no limit."""
        return AsyncCommandInputHandle(self._envd, pid, "pty", timeout)
