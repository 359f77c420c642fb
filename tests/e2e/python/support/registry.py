# SPDX-License-Identifier: Apache-2.0
"""A registry of images on loopback, and a small image with a shell to put there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from support.waiting import eventually

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests" / "sources"))
from auth_servers import Account, PasswordProxy, TokenServer  # noqa: E402
from oci import Layout, Member, layer  # noqa: E402

__all__ = ["Account", "PasswordProxy", "Member", "Registry", "TokenServer", "small_image"]

DIRECTORY, LINK = tarfile.DIRTYPE, tarfile.SYMTYPE
TOOLS = "sh cat chmod chown cp echo env grep id ls mkdir mv passwd printf ps pwd rm sleep stat test"


def is_open(address: tuple[str, int]) -> bool:
    socket.create_connection(address).close()
    return True


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Registry:
    """Debian's docker-registry, storing in `top`."""

    def __init__(self, top: Path) -> None:
        self.host = f"127.0.0.1:{free_port()}"
        config = top / "config.yml"
        config.write_text(
            f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n"
            f"    rootdirectory: {top}/store\nhttp:\n  addr: {self.host}\n"
        )
        found = subprocess.run([ROOT / "scripts" / "registry"], stdout=subprocess.PIPE, check=True)
        self.process = subprocess.Popen(
            [found.stdout.decode().strip(), "serve", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = ("127.0.0.1", int(self.host.split(":")[1]))
        eventually(lambda: is_open(address))

    def push(self, layout: Path, name: str) -> str:
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false"]
            + [f"oci:{layout}", f"docker://{self.host}/{name}"],
            check=True,
        )
        return f"{self.host}/{name}"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)


def small_image(path: Path, *more: Member, config: dict[str, Any] | None = None) -> Path:
    """bash, busybox and the usual files: enough for sandboxes, builds and commands."""
    accounts = b"root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"
    members = [
        Member(name, kind=DIRECTORY, mode=0o755)
        for name in ("bin", "etc", "root", "home", "usr", "usr/bin")
    ]
    members += [
        Member("tmp", kind=DIRECTORY, mode=0o1777),
        Member("home/user", kind=DIRECTORY, mode=0o755, uid=1000, gid=1000),
        Member("bin/bash", Path("/bin/bash-static").read_bytes(), mode=0o755),
        Member("bin/busybox", Path("/bin/busybox").read_bytes(), mode=0o755),
        Member("etc/passwd", accounts),
        Member("etc/group", b"root:x:0:\nuser:x:1000:\n"),
    ]
    members += [Member(f"bin/{tool}", kind=LINK, link="busybox") for tool in TOOLS.split()]
    given = {"Env": ["PATH=/bin:/usr/bin", "FROM_IMAGE=yes"], "WorkingDir": "/srv", "Cmd": ["sh"]}
    Layout(path).image([layer(members), layer(more)], config or given)
    for blob in [path, *path.rglob("*")]:
        os.chmod(blob, 0o755 if blob.is_dir() else 0o644)
    return path
