# SPDX-License-Identifier: Apache-2.0
"""Commands of the command line in a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from pathlib import Path

CLOCHE = os.environ["CLOCHE_BIN"]


class Terminal:
    """The command line in a terminal of its own, as somebody at a keyboard has one."""

    def __init__(
        self,
        *words: str,
        rows: int = 30,
        columns: int = 90,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if cwd:
                os.chdir(cwd)
            os.execve(CLOCHE, [CLOCHE, *words], {**os.environ, **(env or {})})
        self.size(rows, columns)
        self.seen = b""

    def size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, mark: bytes, seconds: float = 60) -> bytes:
        deadline = time.monotonic() + seconds
        while mark not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, self.seen
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                break
        assert mark in self.seen, self.seen
        before, self.seen = self.seen.split(mark, 1)
        return before

    def end(self) -> int:
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status
