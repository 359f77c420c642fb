# SPDX-License-Identifier: Apache-2.0
"""Drives the real kernel program over a socket pair and two pipes, as the agent does."""

import array
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MAIN = Path(__file__).resolve().parents[3] / "kernels" / "python" / "main.py"
PYTHON = os.environ.get("CLOCHE_KERNEL_PYTHON", sys.executable)
PATIENCE = 20.0

Event = dict[str, Any]


class Gone(Exception):
    """The kernel hung up."""


class Pipes:
    """The agent's ends of what a kernel is given: the protocol socket, stdout and stderr pipes."""

    def __init__(self) -> None:
        self.sock, self.theirs = socket.socketpair()
        self.out, self.out_end = os.pipe()
        self.err, self.err_end = os.pipe()
        self.given = [self.theirs.fileno(), self.out_end, self.err_end]

    def handed_over(self) -> None:
        self.theirs.close()
        os.close(self.out_end)
        os.close(self.err_end)

    def close(self) -> None:
        self.sock.close()
        for fd in (self.out, self.err):
            os.close(fd)


class Client:
    """One kernel, seen from the agent's side. Bytes from the pipes are shown as `pipe` events."""

    def __init__(self, pipes: Pipes, process: subprocess.Popen[bytes] | None = None) -> None:
        self.pipes = pipes
        self.process = process
        self.received = b""
        self.runs = 0
        self.ready: Event = {}

    def send(self, message: Event) -> None:
        self.pipes.sock.sendall((json.dumps(message) + "\n").encode())

    def next(self, patience: float = PATIENCE) -> Event:
        """The next message. Raises Gone at end of file, TimeoutError when nothing comes."""
        until = time.monotonic() + patience
        while b"\n" not in self.received:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.pipes.sock], [], [], left)[0]:
                raise TimeoutError(f"no message within {patience} s")
            try:
                data = self.pipes.sock.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                raise Gone
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        assert line.isascii(), line
        return json.loads(line)

    def drain(self, limits: Event | None = None) -> list[Event]:
        """What is in the pipes now, or the number of bytes a `drain` message names."""
        events = []
        for name, fd in (("stdout", self.pipes.out), ("stderr", self.pipes.err)):
            left = 1 << 30 if limits is None else limits[name]
            data = b""
            while left and select.select([fd], [], [], 0)[0]:
                piece = os.read(fd, min(left, 1 << 16))
                if not piece:
                    break
                data += piece
                left -= len(piece)
            if data:
                events.append({"ev": "pipe", "name": name, "text": data.decode("utf-8", "replace")})
        return events

    def start(self, code: str, env: dict[str, str] | None = None) -> int:
        self.runs += 1
        message: Event = {"op": "run", "id": self.runs, "code": code}
        if env is not None:
            message["env"] = env
        self.send(message)
        return self.runs

    def finish(self, interrupting: bool = False) -> list[Event]:
        """Events up to `done`, pipe bytes in their place.

        Interrupting, it repeats SIGINT as the agent does: one that strikes just before a blocking system
        call is not noticed by Python until the call ends.
        """
        events: list[Event] = []
        while True:
            event = self._next_interrupting() if interrupting else self.next()
            if event["ev"] == "drain":
                events += self.drain(event)
                continue
            if event["ev"] == "done":
                events += self.drain()
            assert event.get("id") == self.runs, event
            events.append(event)
            if event["ev"] == "done":
                return events

    def _next_interrupting(self) -> Event:
        for _ in range(10):
            try:
                return self.next(2)
            except TimeoutError:
                self.interrupt()
        raise TimeoutError("the interrupt had no effect")

    def run(self, code: str, env: dict[str, str] | None = None) -> "Outcome":
        self.start(code, env)
        return Outcome(self.finish())

    def interrupt(self) -> None:
        os.killpg(self.ready["pid"], signal.SIGINT)

    def close(self) -> None:
        self.pipes.close()
        if self.process is not None:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Outcome:
    """What one run gave."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        assert events[0]["ev"] == "count", events[0]
        assert events[-1]["ev"] == "done", events[-1]
        self.count = events[0]["n"]
        self.status = events[-1]["status"]

    def text(self, name: str) -> str:
        return "".join(e["text"] for e in self.events if e["ev"] in ("stream", "pipe") and e["name"] == name)

    @property
    def stdout(self) -> str:
        return self.text("stdout")

    @property
    def stderr(self) -> str:
        return self.text("stderr")

    @property
    def results(self) -> list[Event]:
        return [e for e in self.events if e["ev"] == "display"]

    @property
    def main(self) -> dict[str, Any] | None:
        return next((e["data"] for e in self.results if e["main"]), None)

    @property
    def value(self) -> str | None:
        return None if self.main is None else self.main.get("text/plain")

    @property
    def error(self) -> Event | None:
        errors = [e for e in self.events if e["ev"] == "error"]
        assert len(errors) <= 1, errors
        return errors[0] if errors else None

    @property
    def kinds(self) -> list[str]:
        return [e["ev"] for e in self.events]


def spawn(arguments: list[str], home: Path) -> Client:
    """Starts the program with descriptors 1, 2, 3 as the agent gives them."""
    pipes = Pipes()
    # The shell only puts the descriptors in place; nothing of the test process leaks into the kernel.
    sock, out, err = pipes.given
    place = f'exec 3<&{sock} 1>&{out} 2>&{err} {sock}<&- {out}>&- {err}>&- && exec "$@"'
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "MPLCONFIGDIR": str(home / "mpl")}
    process = subprocess.Popen(
        ["/bin/bash", "-c", place, "kernel", PYTHON, str(MAIN), *arguments],
        stdin=subprocess.DEVNULL,
        pass_fds=pipes.given,
        cwd=home,
        env=env,
        start_new_session=True,
    )
    pipes.handed_over()
    client = Client(pipes, process)
    try:
        client.ready = client.next(60)
    except (Gone, TimeoutError) as error:
        words = client.drain()
        client.close()
        raise AssertionError(f"the kernel did not start: {words}") from error
    return client


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def nursery(home: Path) -> Iterator[Client]:
    client = spawn(["--nursery"], home)
    yield client
    client.close()


def fork(nursery: Client) -> Client:
    """A kernel forked by the nursery."""
    pipes = Pipes()
    nursery.runs += 1
    line = json.dumps({"op": "fork", "id": nursery.runs}).encode() + b"\n"
    rights = array.array("i", pipes.given)
    nursery.pipes.sock.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    pipes.handed_over()
    client = Client(pipes)
    client.ready = client.next()
    while True:
        answer = nursery.next()
        if answer["ev"] == "forked" and answer["id"] == nursery.runs:
            assert answer["pid"] == client.ready["pid"]
            return client


def exit_of(nursery: Client, kernel: Client) -> int:
    """The wait status the nursery reports for this kernel."""
    while True:
        event = nursery.next()
        if event["ev"] == "exit" and event["pid"] == kernel.ready["pid"]:
            return event["status"]


@pytest.fixture
def kernel(nursery: Client) -> Iterator[Client]:
    """A fresh kernel from the nursery."""
    client = fork(nursery)
    yield client
    client.close()


@pytest.fixture(scope="module")
def shared(nursery: Client) -> Iterator[Client]:
    """One kernel for all tests of a module that leave nothing behind."""
    client = fork(nursery)
    yield client
    client.close()


@pytest.fixture
def lone(home: Path) -> Iterator[Client]:
    """A kernel started by itself, without a nursery."""
    client = spawn([], home)
    yield client
    client.close()
