# SPDX-License-Identifier: Apache-2.0
"""One kernel: receives messages on descriptor 3, runs cells one at a time, leaves at end of file.

A run is: set its variables, run the cell, put the variables back, say done. Only the cell itself can be interrupted;
everything around it goes to its end, so the agent always gets its `done` and the environment
is always restored.
"""

import asyncio
import atexit
import os
import platform
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

from . import loop as loops
from . import reseed, staleness, streams
from . import shell as shells
from .publisher import Publisher, complain
from .wire import Wire, dumps

PROTOCOL_FD = 3
RENEW_SIGNAL = 41  # named in kernel.json for the agent
MAIN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "main.py")


class Kernel:
    """Built once per process image; attach() turns it into a speaking kernel (after a fork, say)."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.publisher = Publisher(self.wire)
        self.streams = streams.install(self.publisher)
        self.shell = shells.build(self.publisher)
        self.loop: loops.CellLoop | None = None
        self.interruptible = False
        self.is_begun = False  # a cell was announced to the agent, which may want it interrupted from then on
        self.is_called_off = False
        self.is_child = False
        self.is_loaded_elsewhere = False  # a fork of what was loaded before, that has run nothing yet
        loops.allow_run()

    def attach(self) -> None:
        """Takes descriptor 3 and the pipes behind 1 and 2."""
        os.set_inheritable(PROTOCOL_FD, False)
        self.wire = Wire(socket.socket(fileno=PROTOCOL_FD))
        self.publisher.attach(self.wire)
        self.open_loop()
        signal.signal(signal.SIGINT, self.on_interrupt)
        signal.signal(RENEW_SIGNAL, self.on_renewal)
        os.register_at_fork(after_in_child=self._become_child)

    def on_renewal(self, _number: int, _frame: FrameType | None) -> None:
        """The box became another one while a cell runs: the interpreter comes here between two steps of it."""
        reseed.renew()

    def open_loop(self) -> None:
        self.loop = self.shell.loop = loops.CellLoop()
        asyncio.set_event_loop(self.loop)

    def close_loop(self) -> None:
        if self.loop is not None:
            self.loop.close()
        self.loop = self.shell.loop = None
        asyncio.set_event_loop(None)

    def introduce(self) -> None:
        about = {"ev": "ready", "pid": os.getpid(), "version": platform.python_version()}
        self.wire.send(dumps({**about, "interrupt": "signal", "coalesce": True}) + "\n")

    def rehearse(self, cells: list[str]) -> None:
        """Runs cells that nobody sees and that leave nothing behind."""
        names, hidden = dict(self.shell.user_ns), dict(self.shell.user_ns_hidden)
        audible, self.publisher.wire = self.publisher.wire, Wire()
        for code in cells:
            self.run(0, code, {})
        self.publisher.wire = audible
        self.shell.forget(names, hidden)

    def serve(self) -> None:
        """Speaks until the agent hangs up or the user's code asks to leave."""
        while not self.shell.leaving:
            message = self.next_message()
            if message is None:
                break
            self.handle(message)
            if self.is_child:
                os._exit(0)  # a fork made by the user's code reached the end of the cell
        leave()

    def next_message(self) -> dict[str, Any] | None:
        """The next message; None at end of file. Background tasks go on meanwhile."""
        while True:
            try:
                message = self.wire.take()
            except ValueError as error:
                complain(f"ignored a line that is not JSON: {error}")
                continue
            if message is not None:
                return message
            if self.loop is not None and self.loop.busy():
                self._pump()
            if not self.wire.receive():
                return None

    def _pump(self) -> None:
        assert self.loop is not None
        try:
            self.loop.pump(PROTOCOL_FD)
        except (KeyboardInterrupt, SystemExit):
            pass  # ended a background task, not the kernel
        except Exception:
            complain(traceback.format_exc())

    def handle(self, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "run":
            if self.is_loaded_elsewhere and staleness.changed():
                start_over(message, bytes(self.wire.received))
            self.is_loaded_elsewhere = False
            self.run(message["id"], message.get("code") or "", message.get("env") or {})
        elif op == "env":
            set_variables(message.get("set") or {})
            if message.get("renew"):
                reseed.renew()
        elif op == "cd":
            self.wire.send(dumps(self.change_folder(message["path"])) + "\n")

    def change_folder(self, path: str) -> dict[str, Any]:
        try:
            os.chdir(path)
        except (OSError, ValueError) as error:
            return {"ev": "cd", "ok": False, "reason": getattr(error, "strerror", None) or str(error)}
        self.shell.user_ns["_dh"][:] = [os.getcwd()]
        return {"ev": "cd", "ok": True}

    def run(self, run_id: int, code: str, variables: dict[str, str]) -> None:
        """One cell, from `count` to `done`."""
        count = self.shell.execution_count
        self.is_begun, self.is_called_off = True, False
        self.publisher.begin(run_id, count)
        before = set_variables(variables) if variables else {}
        result = self._run_cell(code)
        if before:
            set_variables(before)
        if self.is_child:
            return
        if code and not code.isspace() and self.shell.execution_count != count + 1:
            self.shell.execution_count = count + 1
        error = result.error_before_exec or result.error_in_exec
        if error is not None and not self.publisher.failed:
            self._report(error)
        for stream in self.streams:
            stream.buffer.finish()
        self.publisher.end("error" if error is not None else "ok")

    def _run_cell(self, code: str) -> Any:
        """Runs the code; an interrupt can strike only inside."""
        assert self.loop is not None
        self.loop.enter()
        result = shells.ExecutionResult(None)
        try:
            self.interruptible = True
            if self.is_called_off:
                raise KeyboardInterrupt
            result = self.shell.run_cell(code, store_history=True)
            self.interruptible = False
        except BaseException as error:
            self.interruptible = False
            result.error_in_exec = error
        self.is_begun = False
        self.loop.leave()
        return result

    def _report(self, error: BaseException) -> None:
        """An error that IPython showed elsewhere (a UsageError is only words on stderr)."""
        name, value = type(error).__name__, shells.safe_str(error)
        self.publisher.error(name, value, [f"{name}: {value}" if value else name])

    def on_interrupt(self, _signum: int, frame: FrameType | None) -> None:
        """SIGINT: into the cell's code, or the task it awaits, or nowhere."""
        assert self.loop is not None
        if self.loop.is_running() and self.loop.idle(frame):
            self.loop.cancel_cell()
        elif self.interruptible or self.loop.is_running():
            raise KeyboardInterrupt
        elif self.is_begun:
            self.is_called_off = True  # the cell was announced and not yet entered

    def _become_child(self) -> None:
        """In a process forked by user code: print to the descriptors and leave the protocol alone."""
        if self.is_child:
            return
        self.is_child = True
        for stream in self.streams:
            stream.write_direct()
        sock, self.wire.sock = self.wire.sock, None
        if sock is not None:
            sock.close()
        self.publisher.wire = self.wire = Wire()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.loop is not None:
            self.loop.leave()


def set_variables(values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Sets (None: removes) environment variables, and gives back what was there before."""
    before: dict[str, str | None] = {}
    for name, value in values.items():
        try:
            previous = os.environ.get(name)
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
            before[name] = previous
        except (ValueError, OSError, TypeError) as error:
            complain(f"cannot set the variable {name!r}: {error}")
    if "TZ" in before:
        time.tzset()
    return before


def leave() -> None:
    """Ends the process as Python would, but without waiting for the user's threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        atexit._run_exitfuncs()
    except BaseException:
        complain(traceback.format_exc())
    for original in (sys.__stdout__, sys.__stderr__):
        if original is not None:
            original.flush()
    os._exit(0)


def start_over(message: dict[str, Any], received: bytes) -> None:
    """Libraries were installed since we were loaded, and no user code has run: the process loads itself again."""
    messages = os.memfd_create("messages", 0)
    os.write(messages, (dumps(message) + "\n").encode() + received)
    os.lseek(messages, 0, os.SEEK_SET)
    os.set_inheritable(PROTOCOL_FD, True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.execv(sys.executable, [sys.executable, MAIN, "--again", str(messages)])


def serve(messages: int | None = None) -> None:
    """A kernel started by the agent; or one that starts over, known to the agent, with the settings it got."""
    kernel = Kernel()
    kernel.attach()
    if messages is None:
        kernel.introduce()
    else:
        with open(messages, "rb") as file:
            kernel.wire.received += file.read()
    kernel.serve()
