# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/pty.py: change that file.
"""Terminals in a sandbox."""

from __future__ import annotations

from typing import Optional

from .._core.process import PtySize, input_message, selector, size_message
from .commands import kill_process
from .envd import Envd


class PtyBase:
    """What terminals share whether their output is pulled or pushed."""

    def __init__(self, envd: Envd) -> None:
        self._envd = envd

    def kill(self, pid: int, request_timeout: Optional[float] = None) -> bool:
        """End a terminal with SIGKILL; False if there is none with this pid."""
        return kill_process(self._envd, pid, request_timeout)

    def send_stdin(self, pid: int, data: bytes, request_timeout: Optional[float] = None) -> None:
        """Type into a terminal."""
        message = {**selector(pid), **input_message("pty", data)}
        self._envd.call("process.Process/SendInput", message, request_timeout)

    def resize(self, pid: int, size: PtySize, request_timeout: Optional[float] = None) -> None:
        """Tell a terminal its size."""
        message = {**selector(pid), "pty": size_message(size)}
        self._envd.call("process.Process/Update", message, request_timeout)
