# SPDX-License-Identifier: Apache-2.0
"""A webhook's receiver on loopback that remembers what came, and behaves as it is told."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

CREATED = "sandbox.lifecycle.created"
UPDATED = "sandbox.lifecycle.updated"
PAUSED = "sandbox.lifecycle.paused"
KILLED = "sandbox.lifecycle.killed"


@dataclass
class Delivery:
    at: float
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def signed_by(self, secret: str) -> bool:
        digest = hashlib.sha256(secret.encode() + self.body).digest()
        return self.headers["e2b-signature"] == base64.b64encode(digest).decode().rstrip("=")


Behaviour = Callable[[http.server.BaseHTTPRequestHandler, int], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def act(handler: http.server.BaseHTTPRequestHandler, _: int) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return act


def in_turn(*acts: Behaviour) -> Behaviour:
    """The first request gets the first, and so on; the last one stays."""

    def act(handler: http.server.BaseHTTPRequestHandler, number: int) -> None:
        acts[min(number, len(acts)) - 1](handler, number)

    return act


class Receiver:
    def __init__(self) -> None:
        self.got: list[Delivery] = []
        self.behaviour: Behaviour = answer(200, b"thanks")
        self.over = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Delivery(time.monotonic(), self.path, headers, body))
                receiver.behaviour(self, len(receiver.got))

            def log_message(self, *_: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.http.server_port}/hook"

    def hang(self, handler: http.server.BaseHTTPRequestHandler, _: int) -> None:
        self.over.wait(120)

    def types(self) -> list[str]:
        return [one.json()["type"] for one in self.got]


def drop(handler: http.server.BaseHTTPRequestHandler, _: int) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True
    handler.connection.close()


@contextmanager
def receiver(tls: tuple[str, str] | None = None) -> Iterator[Receiver]:
    """With the files of a certificate and its key: over https."""
    made = Receiver()
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        made.http.socket = context.wrap_socket(made.http.socket, server_side=True)
        made.scheme = "https"
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        made.http.shutdown()
        made.http.server_close()
        thread.join()
