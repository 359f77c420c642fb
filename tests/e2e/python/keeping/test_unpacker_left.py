# SPDX-License-Identifier: Apache-2.0
"""The unpacker's box of an import that can't be removed: nobody else gets its ids until it can."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path

from support.recipes import fresh
from support.registry import Member, small_image
from support.server import Server, binary, own_server
from support.waiting import eventually

LIBC = ctypes.CDLL(None, use_errno=True)


def hold(server: Server, running: subprocess.Popen[str]) -> Path:
    """Something is mounted in the unpacker's box, as soon as there is one."""
    while running.poll() is None:
        for box in (server.data / "boxes").glob("unpack-*"):
            place = box / "held"
            try:
                place.mkdir()
            except OSError:
                continue
            assert LIBC.mount(b"held", str(place).encode(), b"tmpfs", 0, b"size=4k") == 0
            return place
        time.sleep(0.001)  # between two looks: the box is there for a moment only
    raise AssertionError(f"there was no such box: {running.communicate()}")


def test_ids_stay_taken_until_the_box_is_gone(tmp_path: Path) -> None:
    image = small_image(tmp_path / "image", Member("usr/large", os.urandom(48 << 20)))
    with own_server("--pool", "0", "--nets-ready", "0") as server:
        command = [binary(), "template", "import", str(image), fresh("left")]
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"CLOCHE_DATA": str(server.data)},
        )  # fmt: skip
        place = hold(server, running)
        try:
            told, _ = running.communicate(timeout=100)
            assert running.returncode != 0
            assert "could not be removed" in told
            eventually(lambda: f"box {place.parent.name}: not reclaimed, its id range" in server.log())
        finally:
            assert LIBC.umount(str(place).encode()) == 0
        eventually(lambda: f"box {place.parent.name}: reclaimed at try" in server.log())
        assert not place.parent.exists()
