# SPDX-License-Identifier: Apache-2.0
"""Running commands and terminals, blocking."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Literal, Optional, TypeVar, Union, overload

from .._core.connect import frame
from .._core.process import (
    PRIVATE_ENV,
    PTY_ENVS,
    CommandResult,
    PtySize,
    Stderr,
    Stdout,
    Username,
    selector,
    size_message,
    start_message,
    start_pid,
)
from .command_handle import CommandHandle, stream_input
from .commands import CommandsBase
from .envd import Events
from .pty import PtyBase

T = TypeVar("T")
Handler = Callable[[T], Any]


class Commands(CommandsBase):
    """Commands of a sandbox."""

    @overload
    def run(
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
    def run(
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
    def run(
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
    def run(
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
    ) -> CommandHandle[None]: ...

    @overload
    def run(
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
    ) -> CommandHandle[str]: ...

    @overload
    def run(
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
    ) -> CommandHandle[Any]: ...

    def run(
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
        events = self._envd.open(
            "process.Process/Start",
            frame(start_message(["-l", "-c", cmd], envs, cwd, stdin=bool(stdin))),
            timeout,
            request_timeout,
            headers=PRIVATE_ENV if envs else None,
            user=user,
        )
        handle = self._handle(events, "start the command", retain_output)
        return handle if background else handle.wait(on_stdout=on_stdout, on_stderr=on_stderr)

    @overload
    def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[False],
    ) -> CommandHandle[None]: ...

    @overload
    def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: Literal[True] = True,
    ) -> CommandHandle[str]: ...

    @overload
    def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: bool,
    ) -> CommandHandle[Any]: ...

    def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
        *,
        retain_output: bool = True,
    ) -> Any:
        """A handle of a command that runs already. `timeout` ends the handle's stream, not the command."""
        events = self._envd.open(
            "process.Process/Connect", frame(selector(pid)), timeout, request_timeout
        )
        return self._handle(events, "connect to the command", retain_output)

    def _handle(self, events: Events, action: str, retain_output: bool) -> CommandHandle[Any]:
        pid = start_pid(events.first(), action)
        return CommandHandle(
            pid,
            lambda: self.kill(pid),
            events,
            lambda data, timeout: self.send_stdin(pid, data, timeout),
            lambda timeout: self.close_stdin(pid, timeout),
            retain_output,
        )

    def stream_input(
        self, pid: int, data: Iterable[Union[str, bytes]], *, timeout: Optional[float] = 60.0
    ) -> None:
        """Send an iterable to a command's stdin, piece by piece as it yields. `timeout` is the whole time."""
        stream_input(self._envd, pid, "stdin", data, timeout)


class Pty(PtyBase):
    """Terminals of a sandbox."""

    def create(
        self,
        size: PtySize,
        user: Optional[Username] = None,
        cwd: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
    ) -> CommandHandle[Any]:
        """Start a login shell in a terminal. `timeout` is its whole time in seconds, 0 for no limit."""
        message = start_message(["-i", "-l"], {**PTY_ENVS, **(envs or {})}, cwd, pty=size_message(size))
        events = self._envd.open(
            "process.Process/Start",
            frame(message),
            timeout,
            request_timeout,
            headers=PRIVATE_ENV if envs else None,
            user=user,
        )
        return self._handle(events, "start the terminal")

    def connect(
        self,
        pid: int,
        timeout: Optional[float] = 60,
        request_timeout: Optional[float] = None,
    ) -> CommandHandle[Any]:
        """A handle of a terminal that runs already. `timeout` ends the handle's stream, not the terminal."""
        events = self._envd.open("process.Process/Connect", frame(selector(pid)), timeout, request_timeout)
        return self._handle(events, "connect to the terminal")

    def _handle(self, events: Events, action: str) -> CommandHandle[Any]:
        pid = start_pid(events.first(), action)
        return CommandHandle(pid, lambda: self.kill(pid), events)

    def stream_input(
        self, pid: int, data: Iterable[Union[str, bytes]], *, timeout: Optional[float] = 60.0
    ) -> None:
        """Send an iterable to a terminal, piece by piece as it yields. `timeout` is the whole time."""
        stream_input(self._envd, pid, "pty", data, timeout)
