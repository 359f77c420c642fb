# SPDX-License-Identifier: Apache-2.0
"""A mounted network filesystem: sshfs, with Debian's SFTP server on the other end of a pair of sockets.

The server is a process of its own: stopped, the filesystem hangs as one does whose machine is not reached.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import eventually

SFTP_SERVER = "/usr/lib/openssh/sftp-server"


class NetworkMount:
    def __init__(self, exported: Path, at: Path) -> None:
        self.at = at
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.server = subprocess.Popen(
                [SFTP_SERVER, "-e"], stdin=theirs.fileno(), stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL, start_new_session=True,
            )
            # allow_other: the content process and sandboxes are other users; no caches: others write there, too
            options = "passive,allow_other,cache=no,attr_timeout=0,entry_timeout=0"
            self.client = subprocess.Popen(
                ["sshfs", f":{exported}", str(at), "-f", "-o", options],
                stdin=ours.fileno(), stdout=ours.fileno(), start_new_session=True,
            )
        eventually(lambda: os.path.ismount(at), 20, state=lambda: self.client.poll())

    def hang(self) -> None:
        self.server.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.server.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.go_on()
        subprocess.run(["umount", "--lazy", str(self.at)], check=True)
        self.server.kill()
        self.server.wait()
        self.client.wait(20)


@contextmanager
def network_mounts(n: int = 1) -> Iterator[list[NetworkMount]]:
    """The same directory, mounted n times as n machines would."""
    with tempfile.TemporaryDirectory(prefix="cloche-exported.") as home:
        exported = Path(home) / "exported"
        exported.mkdir()
        mounts: list[NetworkMount] = []
        try:
            for i in range(n):
                at = Path(home) / f"machine-{i}"
                at.mkdir()
                mounts.append(NetworkMount(exported, at))
            yield mounts
        finally:
            for one in mounts:
                one.close()
