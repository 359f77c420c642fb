# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that answers as it is told: byte by byte, cut short, or not at all."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Optional


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Dict[str, str]
    body: bytes = b""


Answer = Callable[["Connection", Asked], Optional[bool]]


@dataclass
class Connection:
    """What an answer writes to. Returning False closes the connection."""

    sock: socket.socket
    gone: threading.Event

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    def begin(self, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Reason", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self) -> None:
        self.send(b"0\r\n\r\n")


@dataclass
class Faulty:
    url: str
    answers: List[Answer] = field(default_factory=list)
    asked: List[Asked] = field(default_factory=list)
    connections: int = 0
    errors: List[BaseException] = field(default_factory=list)

    def then(self, *answers: Answer) -> Faulty:
        """The next answers; the last one is given again and again."""
        self.answers.extend(answers)
        return self


def _head(reader: socket.SocketIO) -> Optional[Asked]:
    line = reader.readline().decode()
    if not line:
        return None
    method, path, _ = line.split(" ", 2)
    headers: Dict[str, str] = {}
    while True:
        line = reader.readline().decode().strip()
        if not line:
            return Asked(method, path, headers)
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()


def _body(reader: socket.SocketIO, headers: Dict[str, str]) -> bytes:
    if "content-length" in headers:
        return reader.read(int(headers["content-length"]))
    if headers.get("transfer-encoding") != "chunked":
        return b""
    body = b""
    while True:
        size = int(reader.readline().strip(), 16)
        piece = reader.read(size)
        reader.readline()
        if size == 0:
            return body
        body += piece


def _serve(server: Faulty, sock: socket.socket, gone: threading.Event) -> None:
    reader = sock.makefile("rb")
    try:
        while True:
            asked = _head(reader)
            if asked is None:
                return
            asked.body = _body(reader, asked.headers)
            server.asked.append(asked)
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            if answer(Connection(sock, gone), asked) is False:
                return
    except OSError:
        pass
    except BaseException as error:
        server.errors.append(error)
    finally:
        reader.close()
        sock.close()


@contextmanager
def faulty() -> Iterator[Faulty]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = Faulty(f"http://127.0.0.1:{listener.getsockname()[1]}")
    gone = threading.Event()
    socks: List[socket.socket] = []
    threads: List[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            server.connections += 1
            socks.append(sock)
            threads.append(threading.Thread(target=_serve, args=(server, sock, gone), daemon=True))
            threads[-1].start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        gone.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        thread.join(10)
        for one in threads:
            one.join(10)
    assert not server.errors, server.errors
