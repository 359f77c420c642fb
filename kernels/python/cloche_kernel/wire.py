# SPDX-License-Identifier: Apache-2.0
"""The protocol socket: JSON objects, one per line, in both directions.

What it promises: a line reaches the agent whole or not at all, whichever threads print and
whichever signal handlers raise. Lines up to ATOMIC bytes go out in one send(), which the kernel does
completely or (interrupted) not at all; longer ones are sent with signals held back.
Sending blocks when the agent is slow: that is the back-pressure.
"""

import json
import os
import select
import signal
import socket
import threading
from json.encoder import encode_basestring_ascii as quote
from typing import Any

ATOMIC = 32 * 1024
RECEIVE = 256 * 1024


class Wire:
    """One end of the protocol. Without a socket it swallows everything (the nursery's warm-up)."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        self.sock = sock
        self.lock = threading.RLock()
        self.held = ""
        self.received = bytearray()
        self.searched = 0

    def send(self, line: str) -> None:
        """Sends one or more whole lines (each with its LF), ASCII only."""
        with self.lock:
            self.put(line)

    def put(self, line: str) -> None:
        """send() for who holds the lock already."""
        if self.held:
            line, self.held = self.held + line, ""
        if self.sock is None:
            return
        data = line.encode()
        try:
            if len(data) <= ATOMIC:
                self.sock.send(data)
            else:
                self._send_long(data)
        except ConnectionError:
            os._exit(0)  # the agent is gone, and with it everybody who could read

    def hold(self, line: str) -> None:
        """Keeps a line back to go out together with the next one."""
        with self.lock:
            self.held += line

    def waiting(self, seconds: float = 0) -> bool:
        """Whether the agent has said something that is not read yet, or says it within so many seconds."""
        return self.sock is not None and bool(select.select([self.sock], [], [], seconds)[0])

    def flush(self) -> None:
        if self.held:
            self.send("")

    def _send_long(self, data: bytes) -> None:
        assert self.sock is not None
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.sock.sendall(data)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take(self) -> dict[str, Any] | None:
        """The next message that has been received whole, or None."""
        end = self.received.find(b"\n", self.searched)
        if end < 0:
            self.searched = len(self.received)  # a long message arrives in many pieces
            return None
        line = bytes(self.received[:end])
        del self.received[: end + 1]
        self.searched = 0
        return json.loads(line)

    def receive(self) -> bool:
        """Waits for bytes. False at end of file."""
        assert self.sock is not None
        try:
            data = self.sock.recv(RECEIVE)
        except ConnectionError:
            return False
        self.received += data
        return bool(data)


def dumps(value: Any) -> str:
    """JSON of a value that may hold anything: what JSON lacks becomes its str()."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return json.dumps(_tame(value, 0))


def _tame(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth > 64:
        return "..."
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _tame(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_tame(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    return str(value)


__all__ = ["Wire", "dumps", "quote"]
