# SPDX-License-Identifier: Apache-2.0
"""A server of a test's own: started, stopped and killed by role.

Roles are found as children of the supervisor, the gate and the sender by their unprivileged users,
the warden as root, so that a test needs no help from the program it shoots at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import e2b_code_interpreter as interpreter

from support.state import instance, leaked, look
from support.waiting import eventually
from support.wire import Wire

TEMPLATES = os.environ.get("CLOCHE_TEMPLATES", "/var/cache/cloche")
START_SECONDS = 180
GATE_USER = 64990  # the setting gate_uid
SENDER_USER = 64992  # the setting webhook_uid
CONTENT_USER = 0xFFE00000  # the root of volumes
STOP_SECONDS = 90


def binary() -> str:
    return os.environ["CLOCHE_BIN"]


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text()
        except OSError:
            continue
        if int(status.rsplit(")", 1)[1].split()[1]) == pid:
            found.append(int(entry.name))
    return found


def user_of(pid: int) -> int | None:
    """None when the process is gone meanwhile."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[2]) for line in lines if line.startswith("Uid:"))


# What a server that was built with sanitizers says of them, with the next lines.
FINDING = re.compile(r"^.*(ERROR: \w*Sanitizer|: runtime error: )(.*\n){0,30}", re.M)


class Server:
    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cloche-lifecycle."))
        self.home.chmod(0o755)
        self.data = self.home / "data"
        self.ready = self.home / "ready.json"
        self.key: str | None = None
        self.admin = "the-token-of-a-test"
        self.process: subprocess.Popen[bytes] | None = None
        self.flags: tuple[str, ...] = ()
        self.prefix: list[str] = []  # a command that becomes the one after it
        self.variables: dict[str, str] = {}  # of its environment, beside those of the test
        self.descriptors: tuple[int, ...] = ()  # that it inherits

    def start(self, *extra: str, exit_with: int | None = None) -> dict[str, Any]:
        self.ready.unlink(missing_ok=True)
        self.flags = extra
        if "--admin-token" not in extra:
            extra = (*extra, "--admin-token", self.admin)
        command = [*self.prefix, binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)]
        command += ["--templates", TEMPLATES, "--ready-file", str(self.ready)]
        command += ["--exit-with", str(exit_with or os.getpid()), *extra]
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | self.variables,
                pass_fds=self.descriptors,
            )
        eventually(self.is_ready, START_SECONDS, every=0.02, state=self.log)
        told = json.loads(self.ready.read_text())
        assert instance(str(self.data))  # remembered, for a look when the directory is gone
        self.url = told["url"]
        self.tls_url = told.get("tlsUrl")
        self.key = self.key or told["apiKey"]
        return told

    def is_ready(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log()
        return self.ready.exists()

    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")[-6000:]

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def wire(self) -> Wire:
        return Wire(self.url, self.key)

    def figures(self) -> str:
        """What Prometheus would read."""
        answer = self.wire.call("GET", "/metrics", headers={"X-Admin-Token": self.admin}, with_key=False)
        assert answer.status == 200, answer.body
        return answer.text

    def cell(self, **options: Any) -> interpreter.Sandbox:
        access = {"api_key": self.key, "api_url": self.url, "sandbox_url": self.url}
        return interpreter.Sandbox.create(**access, **options)

    def connect(self, box: str) -> interpreter.Sandbox:
        access = {"api_key": self.key, "api_url": self.url, "sandbox_url": self.url}
        return interpreter.Sandbox.connect(box, **access)

    def gates(self) -> list[int]:
        return [pid for pid in children(self.pid) if user_of(pid) == GATE_USER]

    def senders(self) -> list[int]:
        return [pid for pid in children(self.pid) if user_of(pid) == SENDER_USER]

    def contents(self) -> list[int]:
        return [pid for pid in children(self.pid) if user_of(pid) == CONTENT_USER]

    def wardens(self) -> list[int]:
        return [pid for pid in children(self.pid) if user_of(pid) == 0]

    def signal(self, number: int) -> int:
        """Send a signal to the supervisor and wait for its end."""
        assert self.process
        self.process.send_signal(number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end after signal {number}:\n{self.log()}") from None

    def stop(self) -> int:
        return self.signal(signal.SIGINT)

    def close(self) -> None:
        """End it, whatever happened, and remove its directory."""
        if self.process and self.process.poll() is None:
            self.stop()
        log = self.home / "log"
        found = FINDING.search(log.read_text(errors="replace")) if log.exists() else None
        shutil.rmtree(self.home, ignore_errors=True)
        assert not found, found[0]


@contextmanager
def own_server(*flags: str, start: bool = True, made: Server | None = None) -> Iterator[Server]:
    """A server of a test's or file's own: at the end it is stopped and must have left nothing on the machine.

    A server that the test has ended is started once more as it was last, adopts what its predecessor left and clears it
    away. `start=False` leaves the start, and its flags, to the test.
    """
    server = made or Server()
    data = str(server.data)
    before = look(data)
    try:
        if start:
            server.start(*flags)
        yield server
    finally:
        if server.process and server.process.poll() is not None:
            server.start(*server.flags)
        server.close()
    assert leaked(before, data) == set()
