# SPDX-License-Identifier: Apache-2.0
"""Two teams on one server, and programs that attack from inside a box of one of them.

The attacker is root in a box of its own team, with programs it compiled itself. Their sources are
tests/escape/tenants/NAME.c; they are compiled statically on the host and uploaded, so no template needs a compiler.
"""

from __future__ import annotations

import base64
import functools
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from support.server import Server, binary
from support.wire import RawBox, Wire

SOURCES = Path(__file__).resolve().parents[3] / "escape" / "tenants"


def cloche(server: Server, *words: str) -> str:
    """The command line of the server's own root."""
    done = subprocess.run(
        [binary(), *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=os.environ | {"CLOCHE_DATA": str(server.data)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@functools.cache
def compiled(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / name
        command = ["cc", "-static", "-O1", "-Wall", "-Werror", "-pthread", "-D_GNU_SOURCE", "-o", str(program)]
        subprocess.run([*command, str(SOURCES / f"{name}.c")], check=True, timeout=120)
        return program.read_bytes()


def runtime_with_agent(place: Path, name: str) -> str:
    """A copy of the server's runtime whose agent is an attack program; the real one is beside it as agent.real."""
    shutil.copytree(Path(binary()).resolve().parents[2] / "runtime", place, symlinks=True)
    agent = place / "usr/lib/cloche/agent"
    agent.rename(agent.with_name("agent.real"))
    agent.write_bytes(compiled(name))
    agent.chmod(0o755)
    return str(place)


def put_program(box: RawBox, name: str) -> str:
    """Uploads an attack program into the box and returns its path there."""
    path = f"/tmp/{name}"
    answer = box.agent(
        "POST",
        f"/files?path={path}&username=root",
        compiled(name),
        headers={"Content-Type": "application/octet-stream"},
    )
    if answer.status != 200:  # an agent that takes no raw body: by the shell
        text = base64.b64encode(compiled(name)).decode()
        code, _out, err = box.run(f"base64 -d > {path} <<'END'\n{text}\nEND", user="root")
        assert code == 0, err
    assert box.run(f"chmod 755 {path}", user="root")[0] == 0
    return path


@dataclass
class Tenants:
    server: Server
    attacker: Wire
    victim: Wire

    def attack(self, box: RawBox, name: str, *words: str) -> tuple[int, str, str]:
        """Runs an attack program as root of the box to its end: exit code, stdout, stderr."""
        return box.run(" ".join([put_program(box, name), *words]), user="root")


def two_teams(server: Server) -> Tenants:
    """The server must be started. The victim is the first team, the attacker a second one."""
    team = cloche(server, "team", "create", "Attacker")
    key = cloche(server, "key", "create", "attack", "--team", team)
    return Tenants(server, Wire(server.url, key), server.wire)


def slowest_answer(wire: Wire, seconds: float, path: str = "/health") -> float:
    """Asks over and over for a while and returns the longest time that one answer took, in seconds."""
    worst, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert wire.call("GET", path).status in (200, 204)
        worst = max(worst, time.monotonic() - began)
        time.sleep(0.005)
    return worst
