# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/commands.py: change that file.
"""What commands share whether their output is pulled or pushed."""

from __future__ import annotations

from typing import List, Optional, Union

from .._core.connect import RpcError
from .._core.process import ProcessInfo, input_message, read_processes, selector
from .envd import Envd


def kill_process(envd: Envd, pid: int, request_timeout: Optional[float]) -> bool:
    try:
        message = {**selector(pid), "signal": "SIGNAL_SIGKILL"}
        envd.raw_call("process.Process/SendSignal", message, request_timeout)
    except RpcError as error:
        if error.code == "not_found":
            return False
        raise envd.explain(error) from None
    return True


class CommandsBase:
    """Running commands: listing, input, signals."""

    def __init__(self, envd: Envd) -> None:
        self._envd = envd

    def list(self, request_timeout: Optional[float] = None) -> List[ProcessInfo]:
        """All running commands and terminals."""
        return read_processes(self._envd.call("process.Process/List", {}, request_timeout))

    def kill(self, pid: int, request_timeout: Optional[float] = None) -> bool:
        """End a command with SIGKILL; False if there is none with this pid."""
        return kill_process(self._envd, pid, request_timeout)

    def send_stdin(self, pid: int, data: Union[str, bytes], request_timeout: Optional[float] = None) -> None:
        """Write to a command's stdin; it must have been started with `stdin=True`."""
        message = {**selector(pid), **input_message("stdin", data)}
        self._envd.call("process.Process/SendInput", message, request_timeout)

    def close_stdin(self, pid: int, request_timeout: Optional[float] = None) -> None:
        """Close a command's stdin, so that it reads end of file."""
        self._envd.call("process.Process/CloseStdin", selector(pid), request_timeout)
