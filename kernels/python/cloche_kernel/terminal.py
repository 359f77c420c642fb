# SPDX-License-Identifier: Apache-2.0
"""`!cmd`: a shell command on a terminal of its own, its output shown as it comes.

The command gets a pseudo-terminal, so programs behave as for a person, and stdout and stderr
arrive merged. An interrupt presses Ctrl-C there, waits a moment, then ends the command's session and
goes on to the cell.
"""

import codecs
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress

COLUMNS, ROWS = 80, 24
GRACE = 1.0  # seconds between Ctrl-C and the end
CHUNK = 64 * 1024


def run(command: str) -> int:
    """Runs the command, writes its output to sys.stdout, gives its exit code (negative: signal)."""
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        child = _start(command, slave)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    try:
        try:
            _pass_on(master, child, None)
        except KeyboardInterrupt:
            _end(master, child)
            raise
    finally:
        os.close(master)
    code = child.wait()
    return -(code - 128) if code > 128 else code


def _start(command: str, slave: int) -> subprocess.Popen[bytes]:
    """A session leader that opens a terminal owns it; the small sh does that, then becomes the shell.

    (Doing it in a preexec_fn would copy this whole process first.)
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    if not os.access(shell, os.X_OK):
        shell = "/bin/sh"
    return subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <"$2"', shell, command, os.ttyname(slave)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )


def _pass_on(master: int, child: subprocess.Popen[bytes], until: float | None) -> None:
    """Copies output until the terminal is closed, the command is over and silent, or the time is up."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    over = os.pidfd_open(child.pid)
    watch = select.poll()
    watch.register(master, select.POLLIN)
    watch.register(over, select.POLLIN)
    try:
        while True:
            patience = None if until is None else max(0, int((until - time.monotonic()) * 1000))
            ready = {fd for fd, _ in watch.poll(patience)}
            if master in ready:
                try:
                    data = os.read(master, CHUNK)
                except OSError:
                    break  # the last holder of the terminal closed it
                sys.stdout.write(decoder.decode(data))
            elif over in ready or (until is not None and time.monotonic() >= until):
                break  # over, or out of time; a background process may still hold the terminal
    finally:
        os.close(over)
    sys.stdout.write(decoder.decode(b"", True))


def _end(master: int, child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.write(master, b"\x03")
    with suppress(KeyboardInterrupt):
        _pass_on(master, child, time.monotonic() + GRACE)
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
