# SPDX-License-Identifier: Apache-2.0
"""The rest of the world, run as a child in a network namespace of its own.

One line of JSON on standard input says which addresses it has been given and
which names, some of them with another address at some servers; each further line
gives names other addresses. It ends with that input. A name has one address, or a
list: its questions are answered by them in turn, and the last one stays. On every
address: HTTP at 80, an echo of datagrams at 7, and a name server at 53.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

A, IN = 1, 1
NAME_ERROR = 3
TTL = 60


class Greeting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        here, there = self.connection.getsockname()[0], self.client_address[0]
        body = f"{here} sees {there}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


def name_at(message: bytes, at: int) -> tuple[str, int]:
    """A name without compression, and where it ends."""
    labels = []
    while size := message[at]:
        labels.append(message[at + 1 : at + 1 + size].decode("ascii"))
        at += 1 + size
    return ".".join(labels), at + 1


Names = MutableMapping[str, str | list[str]]


def address_of(names: Names, name: str, kind: int) -> str | None:
    found = names.get(name)
    if isinstance(found, list):
        return found.pop(0) if kind == A and len(found) > 1 else found[0]
    return found


def resolve(names: Names, message: bytes) -> bytes:
    name, end = name_at(message, 12)
    kind = struct.unpack(">H", message[end : end + 2])[0]
    question = message[12 : end + 4]
    address = address_of(names, name.lower(), kind)
    answers = b""
    if address and kind == A:
        answers = struct.pack(">HHHIH", 0xC00C, A, IN, TTL, 4) + socket.inet_aton(address)
    flags = 0x8180 if address else 0x8180 | NAME_ERROR
    head = message[:2] + struct.pack(">HHHHH", flags, 1, 1 if answers else 0, 0, 0)
    return head + question + answers


def datagrams(address: str, port: int, answer: Callable[[bytes], bytes]) -> None:
    """One socket per address, so that answers come from where the question went."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, port))

    def serve() -> None:
        while True:
            message, client = sock.recvfrom(2048)
            try:
                sock.sendto(answer(message), client)
            except (IndexError, struct.error, UnicodeDecodeError):
                continue

    threading.Thread(target=serve, daemon=True).start()


def main() -> None:
    print("moved", flush=True)
    told = json.loads(sys.stdin.readline())
    for address in told["addresses"]:
        datagrams(address, 7, lambda message: message)
        names = ChainMap(told["otherwise"].get(address, {}), told["names"])
        datagrams(address, 53, partial(resolve, names))
    server = ThreadingHTTPServer(("0.0.0.0", 80), Greeting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        told["names"] |= json.loads(line)
        print("changed", flush=True)
    os._exit(0)


main()
