# SPDX-License-Identifier: Apache-2.0
"""Handles of running code, blocking: output is read while somebody iterates or waits."""

from __future__ import annotations

from typing import Iterator, Optional

from .._core.execution import Event
from ..models import Execution
from .code import Callbacks, Code, Run


class ExecutionHandle:
    """Code that runs. Iterating gives its output, results and error as they come."""

    def __init__(self, code: Code, run: Run, callbacks: Callbacks) -> None:
        self._code = code
        self._run = run
        self._callbacks = callbacks
        self._events = run.events()
        self._failure: Optional[Exception] = None

    @property
    def id(self) -> Optional[str]:
        """The server's name of this execution, None if it has none."""
        return self._run.id

    @property
    def execution(self) -> Execution:
        """What has come so far."""
        return self._run.execution

    def __iter__(self) -> Iterator[Event]:
        if self._failure is not None:
            raise self._failure
        try:
            for event in self._events:
                self._callbacks.show(event)
                yield event
        except Exception as error:
            self._failure = error
            raise

    def wait(self) -> Execution:
        """Wait for the end and give the whole execution."""
        for _ in self:
            pass
        return self._run.execution

    def interrupt(self, request_timeout: Optional[float] = None) -> bool:
        """Stop the code as Ctrl-C does; its context lives on. False if it has ended already."""
        return self._code.interrupt(None, None, self.id, request_timeout)

    def disconnect(self) -> None:
        """Stop receiving output."""
        self._run.close()
