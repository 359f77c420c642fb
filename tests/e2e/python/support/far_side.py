# SPDX-License-Identifier: Apache-2.0
"""Servers and proxies of the rest of the world (far_https.py), and what tests of rules say of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import e2b

from support.server import Server, children, user_of
from support.world import PUBLIC, World, run

SUPPORT = Path(__file__).resolve().parent
API, FALSE, PROXY = PUBLIC[1], PUBLIC[2], PUBLIC[3]
NAMES: dict[str, str | list[str]] = {
    "api.example.com": API, "sub.api.example.com": API, "free.example.com": API,
    "lied.example.com": FALSE, "proxy.example.com": PROXY, "inward.example.com": "192.168.77.7",
}  # fmt: skip
EGRESS_USER = 64993  # the setting egress_uid
SHOWN = "https://api.example.com/shown"
CERTIFICATE = "/usr/local/share/ca-certificates/cloche-egress.crt"
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def make(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def vouched(folder: Path, name: str, authority: str, names: str) -> None:
    """A certificate and its key, signed by an authority that is there."""
    make(folder, "req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / "names").write_text(names)
    make(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
         "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip


def certificates(folder: Path) -> None:
    """Two authorities, a server and a proxy that one of them vouches for, and a server nobody vouches for."""
    for name in ("ca", "own"):
        make(folder, "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
             "-days", "2")  # fmt: skip
    names = "subjectAltName=DNS:api.example.com,DNS:*.api.example.com,DNS:free.example.com,DNS:lied.example.com"
    vouched(folder, "api", "ca", names)
    vouched(folder, "proxy", "own", "subjectAltName=DNS:proxy.example.com")
    make(folder, "req", "-x509", *KEY, "-keyout", "false.key", "-out", "false.pem", "-subj", "/CN=x", "-days", "2",
         "-addext", names)  # fmt: skip


@contextmanager
def far_side(world: World, folder: Path) -> Iterator[Path]:
    folder.chmod(0o755)
    certificates(folder)
    servers = [f"{API}=api", f"{FALSE}=false", f"{PROXY}=api"]
    enter = ["nsenter", "-t", str(world.child.pid), "-n"]
    command = [*enter, sys.executable, str(SUPPORT / "far_https.py"), str(folder), *servers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        world.rename(NAMES)
        yield folder
        assert child.stdin
        child.stdin.close()


def seen(world: World) -> list[dict[str, Any]]:
    """What the far side has seen since the last time."""
    look = f"import socket; print(socket.create_connection(('{PROXY}', 99)).makefile().read())"
    line = ["nsenter", "-t", str(world.child.pid), "-n", sys.executable, "-c", look]
    return json.loads(subprocess.run(line, capture_output=True, text=True, timeout=10, check=True).stdout)


def access(server: Server) -> dict[str, Any]:
    return {"api_key": server.key, "api_url": server.url}


def rules(host: str = "api.example.com", **headers: str) -> dict[str, Any]:
    return {"rules": {host: [{"transform": {"headers": headers}}]}}


def ask(box: e2b.Sandbox, url: str = SHOWN) -> dict[str, Any]:
    code, out = run(box, f"curl -sS -m 10 {url} 2>&1")
    assert code == 0, out
    return json.loads(out)


def status(box: e2b.Sandbox, url: str = SHOWN) -> tuple[str, str]:
    out = run(box, f"curl -sS -m 10 -w '\\n%{{http_code}}' {url} 2>&1")[1]
    return out.rsplit("\n", 1)[-1], out


def gateways(server: Server) -> list[int]:
    return [pid for pid in children(server.pid) if user_of(pid) == EGRESS_USER]
