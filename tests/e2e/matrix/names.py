# SPDX-License-Identifier: Apache-2.0
"""Names of sandboxes for programs that must not be changed.

Stock clients that know no E2B_SANDBOX_URL ask for https://PORT-ID.DOMAIN. Names says that everything under DOMAIN is
this machine, as a wildcard record would: a resolver on a loopback address of its own, and a mount namespace for each
program in which /etc/resolv.conf points to it. Nothing outside that namespace changes, and no query leaves the
machine.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
from pathlib import Path
from typing import Self

HEADER = struct.Struct(">6H")
A, IN = 1, 1
WRAPPER = (
    'mount --bind "$1/resolv.conf" /etc/resolv.conf && mount --bind "$1/nsswitch.conf" '
    '/etc/nsswitch.conf && shift && exec "$@"'
)


def question(packet: bytes) -> tuple[str, int, int]:
    """Name and type of a query's question, and where the question ends."""
    labels, at = [], HEADER.size
    while length := packet[at]:
        labels.append(packet[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    kind, _ = struct.unpack_from(">2H", packet, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def answer(packet: bytes, domain: str) -> bytes:
    name, kind, end = question(packet)
    (ident,) = struct.unpack_from(">H", packet)
    ours = name == domain or name.endswith(f".{domain}")
    found = ours and kind == A
    head = HEADER.pack(ident, 0x8580 if ours else 0x8583, 1, int(found), 0, 0)
    record = struct.pack(">3HIH4s", 0xC00C, A, IN, 1, 4, socket.inet_aton("127.0.0.1")) if found else b""
    return head + packet[HEADER.size : end] + record


class Names:
    def __init__(self, domain: str) -> None:
        self.domain = domain
        self.folder = tempfile.TemporaryDirectory(prefix="matrix-names.")
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Self:
        pid = os.getpid()
        address = f"127.53.{pid >> 8 & 0xFF}.{pid & 0xFF or 1}"
        self.socket.bind((address, 53))
        folder = Path(self.folder.name)
        (folder / "resolv.conf").write_text(f"nameserver {address}\noptions timeout:2 attempts:3\n")
        (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.folder.cleanup()

    def serve(self) -> None:
        while True:
            try:
                packet, peer = self.socket.recvfrom(4096)
                self.socket.sendto(answer(packet, self.domain), peer)
            except (IndexError, struct.error):
                continue
            except OSError:
                return

    def wrap(self, command: list[str]) -> list[str]:
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", WRAPPER, "sh", self.folder.name, *command]
