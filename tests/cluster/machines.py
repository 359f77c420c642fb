# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster: a network namespace with a server each, on a bridge that the test's own namespace has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ADMIN = "the-administrators-own"
LEASE_S = 4


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def wait_for(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What it returns, as soon as that is true."""
    until = time.monotonic() + seconds
    while True:
        got = what()
        if got or time.monotonic() > until:
            assert got, f"not within {seconds} s"
            return got
        time.sleep(0.1)  # between two looks


@dataclass
class Machine:
    number: int
    name: str
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="cloche-cluster.")))
    settings: dict[str, str] = field(default_factory=dict)
    holder: subprocess.Popen[bytes] | None = None
    server: subprocess.Popen[bytes] | None = None
    key: str = ""

    @property
    def url(self) -> str:
        return f"http://10.99.0.{10 + self.number}:3000"

    def join(self) -> None:
        """Its namespace, with one end of a veth; the other is at the bridge."""
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        inside = ["nsenter", "-t", str(self.holder.pid), "--net"]
        own = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != own)
        for words in (
            ["ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid)],
            ["ip", "link", "set", self.cable, "master", "cluster", "up"],
            [*inside, "ip", "link", "set", "lo", "up"],
            [*inside, "ip", "address", "add", f"10.99.0.{10 + self.number}/24", "dev", "eth0"],
            [*inside, "ip", "link", "set", "eth0", "up"],
        ):
            subprocess.run(words, check=True)

    @property
    def cable(self) -> str:
        return f"cable{self.number}"

    def start(self, *, ready: bool = True) -> None:
        data, told = self.folder / "data", self.folder / "ready.json"
        told.unlink(missing_ok=True)
        words = {
            "listen": f"10.99.0.{10 + self.number}:3000",
            "data": str(data),
            "templates": os.environ.get("CLOCHE_TEMPLATES", "/var/cache/cloche"),
            "ready-file": str(told),
            "exit-with": str(os.getpid()),
            "store": os.environ["STORE_URL"],
            "node-name": self.name,
            "node-labels": f"zone=z{self.number}",
            "node-lease-seconds": str(LEASE_S),
            "store-seconds": "2",
            "pool": "0",
            "gates": "1",
            **self.settings,
        }
        environment = {**os.environ, "CLOCHE_ADMIN_TOKEN": ADMIN}
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                ["nsenter", "-t", str(self.holder.pid), "--net", os.environ["CLOCHE_BIN"], "serve"]
                + [word for name, value in words.items() for word in (f"--{name}", value)],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        wait_for(lambda: told.exists() or self.server.poll() is not None, 120)
        assert self.server.poll() is None, self.log()
        self.key = json.loads(told.read_text()).get("apiKey", self.key)
        if ready:
            wait_for(lambda: self.node(self.name).get("status") == "ready")

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        if self.server:
            self.server.send_signal(with_signal)
            self.server.wait(60)
            self.server = None

    def leave(self) -> None:
        self.stop(signal.SIGINT)
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.folder)], check=False)

    def cut(self, down: bool) -> None:
        subprocess.run(["ip", "link", "set", self.cable, "down" if down else "up"], check=True)

    # ---- requests, from the test's own namespace or from the machine's ----

    def call(self, method: str, path: str, body: Any = None, *, admin: bool = False) -> Answer:
        headers = {"Content-Type": "application/json"}
        headers |= {"X-Admin-Token": ADMIN} if admin else {"X-API-Key": self.key}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as got:
                return Answer(got.status, dict(got.headers), got.read())
        except urllib.error.HTTPError as got:
            return Answer(got.code, dict(got.headers), got.read())

    def from_inside(self, method: str, path: str, body: Any = None, *, admin: bool = False) -> tuple[int, str]:
        """The same where its link is down."""
        words = ["curl", "-s", "-i", "-m", "30", "-X", method, self.url + path, "-H", "Content-Type: application/json"]
        words += ["-H", f"X-Admin-Token: {ADMIN}" if admin else f"X-API-Key: {self.key}"]
        words += [] if body is None else ["-d", json.dumps(body)]
        got = subprocess.run(
            ["nsenter", "-t", str(self.holder.pid), "--net", *words], check=True, capture_output=True, text=True
        ).stdout
        return int(got.split()[1]), got

    def nodes(self) -> dict[str, Any]:
        got = self.call("GET", "/nodes", admin=True)
        return {n["id"]: n for n in got.json()} if got.status == 200 else {}

    def node(self, name: str) -> dict[str, Any]:
        return self.nodes().get(name, {})

    def create(self) -> Answer:
        return self.call("POST", "/sandboxes", {"templateID": "base", "timeout": 120})

    def processes(self, role: str) -> list[int]:
        """Of its server, by the name that a role gives itself."""
        found = []
        for child in Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == f"cloche-{role}":
                found.append(int(child))
        return found
