# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of isolation microvm, which the stock clients have no word for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.server import Server

CREATE_SECONDS = 180  # under emulation, with images of layers to be made first


def create(server: Server, template: str = "base", **more: Any) -> str:
    body = {"templateID": template, "timeout": 600, "isolation": "microvm", **more}
    answer = server.wire.call("POST", "/sandboxes", body, timeout=CREATE_SECONDS)
    assert answer.status == 201, answer.text
    return str(answer.json()["sandboxID"])


def run(server: Server, box: str, command: str) -> str:
    done = server.connect(box).commands.run(command, user="root", timeout=120)
    return str(done.stdout).strip()


def machines(server: Server) -> list[int]:
    """Processes that are QEMU with a disk of this server."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and is_machine(p, str(server.data))]


def is_machine(process: Path, data: str) -> bool:
    try:
        if (process / "cmdline").read_bytes().split(b"\0")[0] != b"/qemu":
            return False
        return any(str(fd.readlink()).startswith(data) for fd in (process / "fd").iterdir())
    except OSError:
        return False
