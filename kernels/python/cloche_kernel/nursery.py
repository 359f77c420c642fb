# SPDX-License-Identifier: Apache-2.0
"""The nursery: loads everything heavy once, then forks kernels that start in a millisecond.

What it promises its children: one thread, nothing of the user's run, no database, no open figure,
execution count 1, and a heap frozen out of the garbage collector so that forks share it. What must
differ between children (random numbers, keys, session, loop) is renewed in the child by reseed.py.
"""

import array
import importlib
import os
import select
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import heap, reseed, staleness
from .kernel import PROTOCOL_FD, Kernel
from .publisher import complain
from .wire import Wire, dumps

# Each is optional: a template may lack it.
HEAVY = ["numpy", "pandas", "matplotlib", "matplotlib.pyplot", "matplotlib.backends.backend_agg", "PIL.Image"]

CURTAIN = 0.004  # seconds a newborn kernel leaves to a first cell before it rehearses

WARM_UP = """\
1 + 1
import sys as _sys
[1, {'a': 2.5}]
print('', end='')
1 / 0
%cd -q .
x =
await __import__('asyncio').sleep(0)
"""


def load() -> None:
    """Imports what is there."""
    for name in HEAVY:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        except Exception as error:
            complain(f"importing {name} failed: {error!r}")
    staleness.note(["IPython", *HEAVY])


def end_threads() -> None:
    """Ends the threads that numeric libraries start when they load.

    OpenBLAS shuts its pool down before any fork and starts it again at the next large operation, in
    whichever process asks for one. So one empty fork leaves us with one thread, and the user's
    code with as many as ever, without any environment variable.
    """
    if threads() == 1:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # "fork in a process with threads": the point of it
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    if threads() != 1:
        complain(f"{threads()} threads run in the nursery; its forks will miss all but one")


def warm(kernel: Kernel) -> None:
    """Runs a few cells into the void, so that a user's first one finds every path trodden."""
    kernel.open_loop()
    kernel.rehearse([*WARM_UP.splitlines(), *_library_cells()])
    kernel.close_loop()


def _library_cells() -> list[str]:
    cells = []
    if "matplotlib.pyplot" in sys.modules:
        cells.append("import matplotlib.pyplot as p; p.plot([1, 2], [3, 4]); p.title('t'); p.show()")
    if "pandas" in sys.modules:
        cells.append("import pandas; pandas.DataFrame({'a': [1.0], 'b': ['x']})")
    return cells


class Nursery:
    def __init__(self, sock: socket.socket, kernel: Kernel) -> None:
        self.sock = sock
        self.kernel = kernel
        self.wire = Wire(sock)
        self.fds: list[int] = []
        self.request: Any = None
        self.children: set[int] = set()
        self.woken = self.wake = -1

    def become(self) -> None:
        """Becomes the first kernel that is asked for, in this very process. A socket from outside ends with it."""
        while self.request is None:
            if not self.receive(self.note):
                os._exit(0)
        if len(self.fds) < 3:
            os._exit(1)
        self.answer({"ev": "forked", "id": self.request, "pid": os.getpid()})
        fds, self.fds = self.fds[:3], self.fds[3:]
        self.become_kernel(fds)

    def note(self, request: Any) -> None:
        self.request = request

    def serve(self) -> None:
        """Forks on demand until the agent hangs up; the children stay. Ends where it would load something else now."""
        if staleness.changed():
            os._exit(0)
        self.woken, self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, _note)
        signal.set_wakeup_fd(self.wake)
        self.wire.send(dumps({"ev": "ready", "pid": os.getpid(), "nursery": True}) + "\n")
        watch = select.poll()
        watch.register(self.sock, select.POLLIN)
        watch.register(self.woken, select.POLLIN)
        while True:
            ready = {fd for fd, _ in watch.poll()}
            if self.woken in ready:
                self.reap()
            if self.sock.fileno() in ready and not self.receive(self.fork):
                os._exit(0)

    def receive(self, fork: Callable[[Any], None]) -> bool:
        """Reads messages and their descriptors. False at end of file."""
        space = socket.CMSG_SPACE(3 * array.array("i").itemsize * 8)
        data, ancillary, _flags, _address = self.sock.recvmsg(64 * 1024, space)
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self.fds.extend(numbers)
        self.wire.received += data
        while (message := self.wire.take()) is not None:
            if message.get("op") == "fork":
                fork(message["id"])
        return bool(data)

    def fork(self, request: Any) -> None:
        fds, self.fds = self.fds[:3], self.fds[3:]
        if len(fds) < 3:
            for fd in fds:
                os.close(fd)
            self.answer({"ev": "forked", "id": request, "pid": -1, "reason": "three descriptors are needed"})
            return
        if staleness.changed():
            os._exit(0)
        try:
            pid = os.fork()
        except OSError as error:
            self.answer({"ev": "forked", "id": request, "pid": -1, "reason": error.strerror})
        else:
            if pid == 0:
                self.become_kernel(fds)
            self.children.add(pid)
            self.answer({"ev": "forked", "id": request, "pid": pid})
        for fd in fds:
            os.close(fd)

    def become_kernel(self, fds: list[int]) -> None:
        """In the child: the three descriptors become 3, 1, 2, everything personal is renewed.

        A rehearsal takes the page faults of a first cell while nobody waits: an idle kernel then answers
        its first cell as fast as its second. Where a cell comes at once, that is the rehearsal.
        """
        try:
            if self.wake >= 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.setsid()
                os.close(self.woken)
                os.close(self.wake)
            self.sock.detach()
            for source, target in zip(_clear_of_targets(fds), (PROTOCOL_FD, 1, 2), strict=True):
                os.dup2(source, target, inheritable=target != PROTOCOL_FD)
                os.close(source)
            for fd in self.fds:
                os.close(fd)
            self.kernel.attach()
            self.kernel.introduce()
            reseed.renew(fresh=True)
            self.kernel.is_loaded_elsewhere = True
            if not self.kernel.wire.waiting(CURTAIN):
                self.kernel.rehearse(["1 + 1"])
            self.kernel.serve()
        except BaseException as error:
            complain(f"a forked kernel failed: {error!r}")
        finally:
            os._exit(1)

    def reap(self) -> None:
        """Reports to the agent which children ended, and how."""
        try:
            os.read(self.woken, 4096)
        except BlockingIOError:
            pass
        while self.children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.children.discard(pid)
            self.answer({"ev": "exit", "pid": pid, "status": status})

    def answer(self, message: dict[str, Any]) -> None:
        self.wire.send(dumps(message) + "\n")


def _clear_of_targets(fds: list[int]) -> list[int]:
    """The same open files at numbers that the dup2 calls do not overwrite."""
    import fcntl

    moved = []
    for fd in fds:
        moved.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16))
        os.close(fd)
    return moved


def _note(_signum: int, _frame: Any) -> None:
    """The wake-up descriptor carries the news; Python needs a handler for it to be written."""


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def serve() -> None:
    """The nursery of the agent that started us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=PROTOCOL_FD)
    sock.set_inheritable(False)
    heap.gather()
    load()
    kernel = Kernel()
    warm(kernel)
    end_threads()
    reseed.prepare()
    heap.settle()
    Nursery(sock, kernel).serve()
