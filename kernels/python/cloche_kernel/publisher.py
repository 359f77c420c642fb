# SPDX-License-Identifier: Apache-2.0
"""Publishes everything a running cell outputs, in the order it was output.

One Publisher per kernel. It knows which run is on and stamps its id on every message; between runs
there is nobody to show anything to, so output is dropped (a thread that goes on printing is heard
again in the next run). Before a message goes out it asks whether child processes or native code
left bytes in the pipes behind descriptors 1 and 2, and if so has the agent read them first.
"""

import binascii
import sys
from array import array
from fcntl import ioctl
from termios import FIONREAD
from time import sleep
from typing import Any

from .wire import Wire, dumps, quote

ROUNDS, PAUSE = 200, 0.00005  # how often and how long to wait for the agent to read the pipes: 10 ms and more in all
PIECE = 64 * 1024  # characters of one stream message


class Encoded(str):
    """A value that is JSON text already and goes out as it is."""

    __slots__ = ()


class Publisher:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.run: int | None = None
        self.prefixes: dict[str, str | None] = {"stdout": None, "stderr": None}
        self.tag = "null"
        self.failed = False
        self._waiting = (array("i", [0]), array("i", [0]))
        self._piped = False

    def attach(self, wire: Wire) -> None:
        """Speaks over this wire from now on, with the pipes now behind 1 and 2."""
        self.wire = wire
        self._piped = True
        try:
            self.pending()
        except OSError:
            self._piped = False  # not pipes: nothing to keep in order

    def begin(self, run: int, count: int) -> None:
        self.run = run
        self.failed = False
        self.tag = tag = dumps(run)
        for name in self.prefixes:
            self.prefixes[name] = f'{{"ev":"stream","id":{tag},"name":"{name}","text":'
        self.wire.send(f'{{"ev":"count","id":{tag},"n":{count}}}\n')

    def end(self, status: str) -> None:
        with self.wire.lock:
            self.run = None
            for name in self.prefixes:
                self.prefixes[name] = None
            self.wire.put(f'{{"ev":"done","id":{self.tag},"status":"{status}"}}\n')

    def pending(self) -> str:
        """Waits until the agent has read what is in the pipes: it is older than the next message.

        A child that never stops writing is not waited for; what is there then is announced as a `drain`.
        """
        out, err = self._waiting
        for _ in range(ROUNDS):
            ioctl(1, FIONREAD, out, True)
            ioctl(2, FIONREAD, err, True)
            if not (out[0] or err[0]):
                return ""
            sleep(PAUSE)
        return f'{{"ev":"drain","id":{self.tag},"stdout":{out[0]},"stderr":{err[0]}}}\n'

    def ordered(self, line: str) -> str:
        """The line, after a `drain` if the pipes hold something older."""
        return self.pending() + line if self._piped else line

    def text(self, name: str, text: str) -> None:
        """One write to stdout or stderr. Everything a program prints passes here, so it is written out flat.

        The lock spans the look at the run and the sending: no thread can speak for a run that is done.
        """
        if len(text) > PIECE:
            for start in range(0, len(text), PIECE):
                self.text(name, text[start : start + PIECE])
            return
        quoted = quote(text)
        wire = self.wire
        with wire.lock:
            prefix = self.prefixes[name]
            if prefix is None:
                return
            line = f"{prefix}{quoted}}}\n"
            if self._piped:
                line = self.pending() + line
            wire.put(line)

    def display(self, data: dict[str, Any], main: bool) -> None:
        """A rich result. The value of the cell waits a moment to travel with what follows."""
        if not data:
            return
        bundle = ",".join(f"{quote(str(mime))}:{encoded(value)}" for mime, value in data.items())
        flag = "true" if main else "false"
        with self.wire.lock:
            if self.run is None:
                return
            line = self.ordered(f'{{"ev":"display","id":{self.tag},"main":{flag},"data":{{{bundle}}}}}\n')
            if main:
                self.wire.hold(line)
            else:
                self.wire.put(line)

    def error(self, name: str, value: str, traceback: list[str]) -> None:
        """The run's error. Only the first one counts."""
        with self.wire.lock:
            if self.run is None or self.failed:
                return
            self.failed = True
            line = dumps({"ev": "error", "id": self.run, "name": name, "value": value, "traceback": traceback})
            self.wire.put(self.ordered(line + "\n"))

    def flush(self) -> None:
        self.wire.flush()


def encoded(value: Any) -> str:
    """JSON text of one value of a MIME bundle; bytes go as base64."""
    if isinstance(value, Encoded):
        return str.__str__(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f'"{binascii.b2a_base64(value, newline=False).decode("ascii")}"'
    return dumps(value)


def complain(message: str) -> None:
    """A line for the agent's log, past the user's streams."""
    if sys.__stderr__ is not None:
        print(f"cloche python kernel: {message}", file=sys.__stderr__, flush=True)
