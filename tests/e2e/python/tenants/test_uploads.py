# SPDX-License-Identifier: Apache-2.0
"""Uploads whose disk stands still delay themselves: gates answer everybody else, and count what was written."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.recipes import Order, path_of
from support.server import Server
from support.tenants import slowest_answer, two_teams
from support.waiting import eventually

UPLOADS = 16  # enough that every gate has some
PIECE = 1 << 20


@contextmanager
def disk_of_uploads() -> Iterator[Server]:
    """A server whose uploads lie on a filesystem of their own."""
    server = Server()
    image, files = server.home / "disk.ext4", server.data / "files"
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    server.data.mkdir(mode=0o700)
    files.mkdir(mode=0o700)
    subprocess.run(["mount", "-o", "loop", str(image), str(files)], check=True)
    try:
        server.start("--pool", "0")
        yield server
        server.stop()
    finally:
        if server.process and server.process.poll() is None:
            server.stop()
        subprocess.run(["umount", "--lazy", str(files)], check=True)
        server.close()


@contextmanager
def frozen(files: Path) -> Iterator[None]:
    subprocess.run(["fsfreeze", "--freeze", str(files)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(files)], check=True)


def begin(order: Order, archive: bytes) -> socket.socket:
    """An upload whose head is sent; its body is the caller's to send."""
    link = order.wire.call("GET", f"/templates/{order.template}/files/{hashlib.sha256(archive).hexdigest()}").json()
    stream = order.wire.open(60)
    head = f"PUT {path_of(link['url'])} HTTP/1.1\r\nHost: api\r\nContent-Length: {len(archive)}\r\n\r\n"
    stream.sendall(head.encode())
    return stream


def test_a_disk_that_stands_still_delays_uploads_only() -> None:
    with disk_of_uploads() as server:
        tenants = two_teams(server)
        order = Order(tenants.attacker, f"slow-{os.getpid()}").request()
        archives = [bytes([65 + i]) * PIECE for i in range(UPLOADS)]
        streams = [begin(order, archive) for archive in archives]
        files = server.data / "files"
        eventually(lambda: len(list(files.rglob("*.new-*"))) == UPLOADS, 20)
        with frozen(files):
            for stream, archive in zip(streams, archives, strict=True):
                stream.setblocking(False)
                stream.send(archive)  # as much as goes: the gate reads no more than it can write
            assert slowest_answer(tenants.victim, 3, "/livez") < 1
            assert slowest_answer(tenants.victim, 1, "/sandboxes") < 1
            streams.pop().close()  # a client that leaves meanwhile harms nobody
            assert slowest_answer(tenants.victim, 1, "/livez") < 1
        for stream in streams:
            stream.close()
        eventually(lambda: not list(files.rglob("*.new-*")), 20)
        again = begin(order, archives[0])
        again.sendall(archives[0])
        assert again.recv(100).startswith(b"HTTP/1.1 200")
        again.close()
        stored = [entry for entry in files.rglob("*") if entry.is_file()]
        assert [entry.read_bytes() == archives[0] for entry in stored] == [True]
