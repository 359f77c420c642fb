# SPDX-License-Identifier: Apache-2.0
"""A machine that lost its power, as far as one server is concerned.

Every process that belongs to the server or its boxes is killed, every mount and
loop device on its data directory and all its control groups are taken away. What
is left is what a disk would hold after a reboot.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from support.server import Server
from support.state import cgroups, loops, mounts, processes


def kill_all(data: str) -> None:
    deadline = time.monotonic() + 60
    while found := processes(data):
        assert time.monotonic() < deadline, found
        for line in found:
            try:
                os.kill(int(line.split()[1]), signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def unmount_all(data: str) -> None:
    points = [line.split()[5] for line in mounts(data)]
    for point in sorted(points, key=len, reverse=True):
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)
    deadline = time.monotonic() + 60  # a device goes a moment after the last mount of it
    while left := mounts(data) | loops(data):
        assert time.monotonic() < deadline, left
        for line in loops(data):
            subprocess.run(["losetup", "-d", f"/dev/{line.split()[1]}"], check=False, capture_output=True)
        time.sleep(0.05)


def remove_groups(data: str) -> None:
    deadline = time.monotonic() + 60
    while paths := [line.split(" ", 1)[1] for line in cgroups(data)]:
        for path in sorted(paths, key=len, reverse=True):
            try:
                Path(path).rmdir()
            except OSError:
                continue
        if time.monotonic() > deadline:
            raise AssertionError(f"groups are left: {paths}")
        time.sleep(0.1)


def power_off(server: Server) -> None:
    assert server.process
    data = str(server.data)
    os.sync()
    server.process.kill()
    server.process.wait()
    kill_all(data)
    unmount_all(data)
    remove_groups(data)
