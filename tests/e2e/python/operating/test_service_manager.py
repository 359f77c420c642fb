# SPDX-License-Identifier: Apache-2.0
"""Under a service manager: readiness, the watchdog's sign of life, listening sockets that outlive the server.

The test is the manager, by the protocol of sd_notify(3) and sd_listen_fds(3); tests/packages has the real one.
"""

from __future__ import annotations

import array
import itertools
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, own_server
from support.waiting import eventually

NUMBERS = itertools.count()


class Manager:
    """Hears what the server says; keeps what it is given to keep."""

    def __init__(self) -> None:
        self.name = f"cloche-test-manager-{os.getpid()}-{next(NUMBERS)}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name)
        self.heard: list[str] = []
        self.kept: dict[str, int] = {}
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            text, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4))
            lines = dict(line.split("=", 1) for line in text.decode().splitlines())
            for _, _, data in ancillary:
                self.kept[lines["FDNAME"]] = array.array("i", data)[0]
            if "FDSTOREREMOVE" in lines:
                os.close(self.kept.pop(lines["FDNAME"]))
            self.heard.append(text.decode())

    def serves(self, server: Server) -> None:
        """The next start is by this manager. What it keeps becomes descriptors 3, 4, ... of the server."""
        server.variables = {"NOTIFY_SOCKET": "@" + self.name, "WATCHDOG_USEC": "1000000"}
        moves = "; ".join(f"exec {3 + place}<&{fd}" for place, fd in enumerate(self.kept.values())) or ":"
        server.prefix = ["bash", "-c", f'{moves}; export LISTEN_PID=$$; exec "$@"', "manager"]
        server.descriptors = tuple(self.kept.values())
        if self.kept:
            server.variables |= {"LISTEN_FDS": str(len(self.kept)), "LISTEN_FDNAMES": ":".join(self.kept)}

    def was_told(self, text: str) -> bool:
        return any(text in one for one in self.heard)


@pytest.fixture
def managed() -> Iterator[tuple[Server, Manager]]:
    manager = Manager()
    with own_server(start=False) as server:
        manager.serves(server)
        server.start()
        yield server, manager


def test_it_is_told_and_no_key_is_in_the_log(managed: tuple[Server, Manager]) -> None:
    server, manager = managed
    eventually(lambda: manager.was_told(f"READY=1\nSTATUS=serving at {server.url}"))
    eventually(lambda: manager.was_told("WATCHDOG=1"))
    log = server.log()
    assert "cloche key create" in log
    assert "export E2B_API_KEY=..." in log
    assert server.key
    assert server.key not in log
    assert "#login=" not in log
    os.kill(server.pid, signal.SIGHUP)
    eventually(lambda: manager.was_told("RELOADING=1"))
    for pid in server.gates():
        inherited = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"NOTIFY_SOCKET" not in inherited
        assert b"LISTEN_FDS" not in inherited


def test_connections_wait_while_the_server_restarts(managed: tuple[Server, Manager]) -> None:
    server, manager = managed
    url = server.url
    box = server.cell()
    box.run_code("x = 41")
    eventually(lambda: any(name.startswith("kept-listen-") for name in manager.kept))
    server.signal(signal.SIGTERM)
    assert manager.was_told("STOPPING=1")
    answers: list[int] = []
    request = urllib.request.Request(url + "/sandboxes", headers={"X-API-Key": str(server.key)})
    client = threading.Thread(target=lambda: answers.append(urllib.request.urlopen(request).status))
    client.start()  # nobody serves now; the connection is not refused
    manager.serves(server)
    server.start()
    assert server.url == url
    client.join(60)
    assert answers == [200], server.log()
    assert server.connect(box.sandbox_id).run_code("x + 1").text == "42"
    box.kill()
