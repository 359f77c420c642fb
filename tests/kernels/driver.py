# SPDX-License-Identifier: Apache-2.0
"""Drives a kernel program the way the agent does, for the tests of every kernel.

A `Kernel` starts the program of a kernel folder with the descriptors and the surroundings of
docs/kernel-protocol.md, reads both pipes and the protocol socket, and keeps the order of output
as the agent does: messages first, pipes at `drain` and at `done`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from template_root import has_file, mounted_root, store_layers, wanted_layers

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
INSTALLED = "/usr/lib/cloche/kernels"
PATIENCE = 60.0  # seconds until silence is a failure, on the busiest machine
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Run:
    """What one cell produced, in order."""

    id: int
    events: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""
    count: int = 0
    is_dead: bool = False
    seconds: float = 0.0

    def stream(self, name: str) -> list[str]:
        return [e["text"] for e in self.events if e["ev"] == "stream" and e["name"] == name]

    @property
    def stdout(self) -> str:
        return "".join(self.stream("stdout"))

    @property
    def stderr(self) -> str:
        return "".join(self.stream("stderr"))

    @property
    def displays(self) -> list[dict[str, Any]]:
        return [e for e in self.events if e["ev"] == "display"]

    @property
    def main(self) -> dict[str, Any] | None:
        found = [e["data"] for e in self.displays if e["main"]]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def text(self) -> str | None:
        return None if self.main is None else self.main.get("text/plain")

    @property
    def error(self) -> dict[str, Any] | None:
        found = [e for e in self.events if e["ev"] == "error"]
        assert len(found) <= 1, found
        return found[0] if found else None


def kernel_spec(language: str) -> dict[str, Any]:
    return json.loads((KERNELS / language / "kernel.json").read_text())


def layers_for(language: str) -> tuple[str, ...] | None:
    """The layers to run in, () for this machine itself, None if the kernel can run nowhere."""
    needed = [p for p in kernel_spec(language)["requires"] if not p.startswith(INSTALLED)]
    choices = [wanted_layers()] if os.environ.get("CLOCHE_KERNEL_ROOT") else [[], store_layers()]
    for layers in choices:
        if all(has_file(layers or [""], path) for path in needed):
            return tuple(layers)
    return None


def kernel_root(language: str) -> str | None:
    """The directory to chroot into, or None for this machine itself; skips where neither will do."""
    layers = layers_for(language)
    if layers is None:
        pytest.skip(f"no {kernel_spec(language)['needs']} here, and no template with it is built")
    return mounted_root(layers, KERNELS) if layers else None


class Kernel:
    """One running kernel program."""

    def __init__(self, language: str, cwd: str = "/", env: dict[str, str] | None = None) -> None:
        self.language = language
        self.root = kernel_root(language)
        self.ours, theirs = socket.socketpair()
        self.pipes = [os.pipe(), os.pipe()]
        self.lines: list[dict[str, Any]] = []
        self.partial = b""
        self.next_id = 0
        self.ready: dict[str, Any] = {}
        self.cwd = cwd
        started = time.monotonic()
        self.process = self._spawn(theirs.fileno(), env or {})
        theirs.close()
        for _, write in self.pipes:
            os.close(write)
        for read, _ in self.pipes:
            os.set_blocking(read, False)
        try:
            self.ready = self.message()
        except BaseException as error:
            told = Run(0)
            self.drain(told)
            error.add_note(f"{language} said: {told.stdout}{told.stderr}")
            self.close()
            raise
        self.ready_seconds = time.monotonic() - started
        assert self.ready["ev"] == "ready", self.ready

    def _spawn(self, protocol: int, extra: dict[str, str]) -> subprocess.Popen[bytes]:
        root = self.root
        folder = INSTALLED if root else str(KERNELS)
        argv = [a.replace(INSTALLED, folder) for a in kernel_spec(self.language)["argv"]]
        env = {
            "HOME": "/root",
            "USER": "root",
            "LOGNAME": "root",
            "LANG": "C.UTF-8",
            "PATH": PATH,
            "CLOCHE_KERNEL": self.language,
        } | extra
        out, err = self.pipes[0][1], self.pipes[1][1]

        def prepare() -> None:
            os.setsid()
            high = os.dup2(protocol, 100)
            os.dup2(out, 101)
            os.dup2(err, 102)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(101, 1)
            os.dup2(102, 2)
            os.dup2(high, 3)
            os.closerange(4, 256)
            if root:
                os.chroot(root)
            os.chdir(self.cwd)
            os.set_inheritable(3, True)

        return subprocess.Popen(argv, env=env, preexec_fn=prepare, close_fds=False)

    # -- the protocol -------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        self.ours.settimeout(PATIENCE)
        self.ours.sendall(json.dumps(message).encode() + b"\n")

    def message(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """The next message; EOFError when the kernel is gone."""
        end = time.monotonic() + timeout
        while not self.lines:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{self.language}: no message in {timeout} s")
            watched = [self.ours.fileno()]
            if not select.select(watched, [], [], left)[0]:
                continue
            data = self.ours.recv(1 << 20)
            if not data:
                raise EOFError
            *whole, self.partial = (self.partial + data).split(b"\n")
            self.lines += [json.loads(line.decode(errors="replace")) for line in whole]
        return self.lines.pop(0)

    def drain(self, run: Run) -> None:
        for (read, _), name in zip(self.pipes, ("stdout", "stderr"), strict=True):
            data = b""
            try:
                while piece := os.read(read, 1 << 16):
                    data += piece
            except BlockingIOError:
                pass
            if data:
                text = data.decode(errors="replace")
                run.events.append({"ev": "stream", "name": name, "text": text, "pipe": True})

    def start(self, code: str, env: dict[str, str] | None = None) -> Run:
        self.next_id += 1
        message: dict[str, Any] = {"op": "run", "id": self.next_id, "code": code}
        if env is not None:
            message["env"] = env
        self.send(message)
        return Run(self.next_id)

    def finish(self, run: Run, timeout: float = PATIENCE) -> Run:
        """Reads events until the run is done or the kernel is gone."""
        end = time.monotonic() + timeout
        started = time.monotonic()
        while True:
            try:
                message = self.message(max(0.01, end - time.monotonic()))
            except (EOFError, ConnectionResetError):
                run.is_dead = True
                self.drain(run)
                return run
            assert message.get("id") == run.id, message
            if message["ev"] == "drain":
                self.drain(run)
            elif message["ev"] == "count":
                assert run.count == 0 and not run.events, "count comes first and once"
                run.count = message["n"]
            elif message["ev"] == "done":
                self.drain(run)
                run.status = message["status"]
                run.seconds = time.monotonic() - started
                return run
            else:
                run.events.append(message)

    def run(self, code: str, env: dict[str, str] | None = None, timeout: float = PATIENCE) -> Run:
        return self.finish(self.start(code, env), timeout)

    def until(self, run: Run, text: str, timeout: float = PATIENCE) -> None:
        """Reads events until `text` was printed."""
        end = time.monotonic() + timeout
        while text not in run.stdout:
            message = self.message(max(0.01, end - time.monotonic()))
            if message["ev"] == "drain":
                self.drain(run)
            elif message["ev"] == "count":
                run.count = message["n"]
            else:
                assert message["ev"] != "done", run
                run.events.append(message)

    def place(self, path: str) -> str:
        """Where the kernel's `path` is for us."""
        return (self.root or "") + path

    def cd(self, path: str) -> dict[str, Any]:
        self.send({"op": "cd", "path": path})
        return self.message()

    def set_env(self, values: dict[str, str]) -> None:
        self.send({"op": "env", "set": values})

    def interrupt(self, run: Run) -> None:
        if self.ready.get("interrupt") == "message":
            self.send({"op": "interrupt", "id": run.id})
        else:
            os.killpg(self.process.pid, signal.SIGINT)

    def run_and_interrupt(self, code: str, after: float = 0.3, timeout: float = PATIENCE) -> Run:
        run = self.start(code)
        time.sleep(after)  # a moment inside the cell, whatever it does
        self.interrupt(run)
        return self.finish(run, timeout)

    def insist(self, run: Run) -> Run:
        """Interrupts again every few seconds, as the agent does: one may fall between two processes of a cell."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.finish(run, 5)
            except TimeoutError:
                if time.monotonic() > end:
                    raise
                self.interrupt(run)

    def harass(self, cells: list[str], show: str, shown: str, times: int) -> None:
        """Interrupts cells at any moment; none may hang, die, or take what `show` prints with it."""
        chance = random.Random(5)
        for _ in range(times):
            run = self.start(chance.choice(cells))
            for _ in range(chance.choice((1, 1, 2))):
                time.sleep(chance.choice((0, 0.0005, 0.002, 0.005, 0.02)))  # at any moment
                self.interrupt(run)
            self.insist(run)
            assert not run.is_dead, run
            after = self.run(show)
            assert (after.stdout.strip(), after.status) == (shown, "ok"), (run, after)

    # -- the end ------------------------------------------------------------------------------

    def hang_up(self, timeout: float = PATIENCE) -> int:
        """Closes the protocol socket; the kernel has to leave by itself."""
        self.ours.close()
        return self.process.wait(timeout)

    def close(self) -> None:
        self.ours.close()
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self.process.kill()
        self.process.wait(10)
        for read, _ in self.pipes:
            with contextlib.suppress(OSError):
                os.close(read)
        self.pipes = []
