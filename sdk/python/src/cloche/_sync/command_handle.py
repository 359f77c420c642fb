# SPDX-License-Identifier: Apache-2.0
"""Handles of running commands, blocking: output is read while somebody iterates or waits."""

from __future__ import annotations

from typing import Callable, Generic, Iterable, Iterator, Literal, Optional, Union

from .._core.connect import frame
from .._core.process import CommandResult, Output, OutputT, Piece, PtyOutput, Stderr, Stdout, input_message, selector
from ..exceptions import SandboxException
from .envd import Envd, Events

InputKind = Literal["stdin", "pty"]


class CommandHandle(Generic[OutputT]):
    """A running command or terminal. Iterating gives `(stdout, stderr, pty)`, of which one is set."""

    def __init__(
        self,
        pid: int,
        handle_kill: Callable[[], bool],
        events: Events,
        handle_send_stdin: Optional[Callable[[Union[str, bytes], Optional[float]], None]] = None,
        handle_close_stdin: Optional[Callable[[Optional[float]], None]] = None,
        retain_output: bool = True,
    ) -> None:
        self._pid = pid
        self._handle_kill = handle_kill
        self._handle_send_stdin = handle_send_stdin
        self._handle_close_stdin = handle_close_stdin
        self._events = events
        self._output = Output(retain_output)
        self._failure: Optional[Exception] = None

    @property
    def pid(self) -> int:
        return self._pid

    def __iter__(self) -> Iterator[Piece]:
        try:
            for message in self._events:
                yield from self._output.take(message)
        except Exception:
            yield from self._output.flush()
            raise
        yield from self._output.flush()

    def disconnect(self) -> None:
        """Stop receiving output; the command goes on."""
        self._events.close()

    def wait(
        self,
        on_pty: Optional[Callable[[PtyOutput], None]] = None,
        on_stdout: Optional[Callable[[Stdout], None]] = None,
        on_stderr: Optional[Callable[[Stderr], None]] = None,
    ) -> CommandResult[OutputT]:
        """Wait for the end; raises CommandExitException when the status is not 0."""
        try:
            for stdout, stderr, pty in self:
                if stdout is not None and on_stdout:
                    on_stdout(stdout)
                elif stderr is not None and on_stderr:
                    on_stderr(stderr)
                elif pty is not None and on_pty:
                    on_pty(pty)
        except Exception as error:
            self._failure = error
        if self._failure is not None:
            raise self._failure
        return self._output.result()

    def kill(self) -> bool:
        """End the command with SIGKILL; False if it has ended already."""
        return self._handle_kill()

    def send_stdin(self, data: Union[str, bytes], request_timeout: Optional[float] = None) -> None:
        """Write to the command's stdin; it must have been started with `stdin=True`."""
        if self._handle_send_stdin is None:
            raise SandboxException("this handle has no stdin; a terminal's is `pty.send_stdin`")
        self._handle_send_stdin(data, request_timeout)

    def close_stdin(self, request_timeout: Optional[float] = None) -> None:
        """Close the command's stdin, so that it reads end of file."""
        if self._handle_close_stdin is None:
            raise SandboxException("this handle has no stdin that can be closed")
        self._handle_close_stdin(request_timeout)


def stream_input(
    envd: Envd, pid: int, kind: InputKind, data: Iterable[Union[str, bytes]], timeout: Optional[float]
) -> None:
    """Send an iterable as it yields, and return when the sandbox has taken all of it."""

    def frames() -> Iterator[bytes]:
        yield frame({"start": selector(pid)})
        for piece in data:
            yield frame({"data": input_message(kind, piece)})

    for _ in envd.open("process.Process/StreamInput", frames(), timeout, 0, silence=None):
        pass
