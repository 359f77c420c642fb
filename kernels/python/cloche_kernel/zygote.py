# SPDX-License-Identifier: Apache-2.0
"""The zygote: a nursery outside all boxes, whose forks move into boxes and are kernels or nurseries there.

It runs as a host user without rights, in namespaces of its own, on a read-only view of the template. The
warden makes each box's user namespace belong to that user, so a fork of ours may enter it: enter_box.c lists the
steps. In the box the fork serves the box's agent: as the first kernel, or as a nursery where more than one is wanted.
No user code runs before it is one of the box's own processes.

Nothing in here waits for a process that a box can stop, nor for the end of what a box has sent into its agent's socket:
who closes that one last closes what is in its queue, and a connection of the box may linger there. So ours is closed
while the walker still has its own, and where there is no walker it is kept until there is one (Mover.fork). Memory that
forks get must tell them nothing of other boxes: a message is read whole, with its descriptors, into one buffer that is
cleared before the fork.
"""

import array
import ctypes
import errno
import json
import os
import select
import signal
import socket
import time
from typing import Any

from . import heap, reseed, staleness
from .kernel import PROTOCOL_FD, Kernel
from .nursery import Nursery, end_threads, load, warm
from .publisher import complain
from .wire import dumps

HOME = "/home/user"
SYS_ARCH_PRCTL = 158  # x86-64
ARCH_GET_FS, PR_GET_TID_ADDRESS = 0x1003, 40
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SO_PASSRIGHTS = 83
MESSAGE_MAX = 4096
FDS_MAX = 20
ENTER_SECONDS = 5.0  # for a walker to end; a frozen box may hold it

libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


class Move(ctypes.Structure):
    """The argument of enter_box.c."""

    GROUPS_MAX = 16
    _fields_ = [
        ("filter", ctypes.c_uint64),
        ("capabilities", ctypes.c_uint64),
        ("tid_place", ctypes.c_uint64),
        ("rseq_place", ctypes.c_uint64),
        ("instructions", ctypes.c_uint32),
        ("files", ctypes.c_uint32),
        ("sock", ctypes.c_int32),
        ("box", ctypes.c_int32),
        ("groups", ctypes.c_int32 * GROUPS_MAX),
        ("group_count", ctypes.c_int32),
        ("gate", ctypes.c_int32 * 2),
    ]


class Mover:
    """Forks into boxes: see enter_box.c."""

    STEPS = (
        "",
        "descriptors",
        "entering its namespaces",
        "",
        "/dev/null",
        "identity",
        "limits",
        "filter",
        "capabilities",
        "control groups",
    )
    FIRST_STEP = 200
    ENDED = (FIRST_STEP + 3, errno.ENOMEM)  # the box has ended meanwhile, which is nobody's fault

    def __init__(self) -> None:
        self.library = ctypes.PyDLL(os.path.join(os.path.dirname(__file__), "enter_box.so"))
        self.library.move_fork.restype = ctypes.c_long
        self.python = ctypes.pythonapi
        tid = ctypes.c_uint64()
        _call("thread id", libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(tid), 0, 0, 0))
        self.tid_place = tid.value
        self.rseq_place = _rseq_place()
        self.spans: ctypes.Array[heap.Span] = (heap.Span * 0)()
        self.unclosed: list[int] = []  # agents' sockets

    def fork(self, fds: list[int], code: bytes, message: dict[str, Any]) -> int:
        """0 in the fork, inside the box; here the pid of the walker, or -1. Owns the first descriptor."""
        sock, box, _program, *groups = fds
        self.unclosed.append(sock)
        text = ctypes.create_string_buffer(code, len(code))
        move = Move(ctypes.addressof(text), int(message["caps"]), self.tid_place, self.rseq_place, len(code) // 8)
        move.files, move.sock, move.box = int(message["files"]), sock, box
        move.group_count = len(groups)
        move.groups[: len(groups)] = groups
        gate = os.pipe2(os.O_CLOEXEC)
        move.gate[:] = gate
        self.python.PyOS_BeforeFork()
        child = self.library.move_fork(ctypes.byref(move))
        if child == 0:
            self.python.PyOS_AfterFork_Child()
            self.unclosed.clear()
            return 0
        self.python.PyOS_AfterFork_Parent()
        while child > 0 and self.unclosed:
            os.close(self.unclosed.pop())
        for end in gate:
            os.close(end)
        if child < 0:
            complain(f"no fork for a box: {os.strerror(-child)}")
        return child if child > 0 else -1

    def explain(self, status: int) -> None:
        """Says why a walker failed."""
        code = os.waitstatus_to_exitcode(status)
        step = code - self.FIRST_STEP
        if 0 < step < len(self.STEPS):
            complain(f"a fork could not enter its box: {self.STEPS[step]}")
        else:
            complain(f"a fork could not enter its box: {os.strerror(code) if code > 0 else f'signal {-code}'}")

    def touch(self) -> None:
        """In the fork: copies what it will write to, all at once."""
        self.library.move_touch(self.spans, ctypes.c_uint64(len(self.spans)))


def _rseq_place() -> int:
    """Where the C library shares its thread's state with the scheduler; 0 where it does not."""
    try:
        if not ctypes.c_uint.in_dll(libc, "__rseq_size").value:
            return 0
        offset = ctypes.c_ssize_t.in_dll(libc, "__rseq_offset").value
    except ValueError:
        return 0
    base = ctypes.c_uint64()
    _call("thread pointer", libc.syscall(SYS_ARCH_PRCTL, ARCH_GET_FS, ctypes.byref(base)))
    return base.value + offset


class Zygote:
    def __init__(self, sock: socket.socket, kernel: Kernel, mover: Mover) -> None:
        self.sock = sock
        self.mover = mover
        self.kernel = kernel
        self.message = bytearray(MESSAGE_MAX)
        self.walkers: dict[int, tuple[Any, float]] = {}  # pid: the message's id, and until when
        self.woken = self.wake = -1

    def serve(self) -> None:
        """Not dumpable from here on, nor are its forks before they say so. Orphans of walkers are ours to reap."""
        _call("dumpable", libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        _call("subreaper", libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        self.woken, self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, _note)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        self.answer({"ev": "ready", "pid": os.getpid()})
        watch = select.poll()
        watch.register(self.sock, select.POLLIN)
        watch.register(self.woken, select.POLLIN)
        while True:
            ready = {fd for fd, _ in watch.poll(1000 if self.walkers else None)}
            if self.woken in ready:
                os.read(self.woken, 4096)
            self.reap()
            self.expire()
            if self.sock.fileno() in ready and not self.receive():
                os._exit(0)

    def receive(self) -> bool:
        """One message and its descriptors. False at end of file."""
        space = socket.CMSG_SPACE(FDS_MAX * array.array("i").itemsize)
        size, ancillary, _flags, _address = self.sock.recvmsg_into([self.message], space, socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        message = json.loads(self.message[:size]) if size else {}
        self.message[:size] = bytes(size)
        if message.get("op") == "enter" and len(fds) == message["fds"]:
            self.enter(message, list(fds))
            fds.pop(0)
        for fd in fds:
            os.close(fd)
        return size > 0

    def enter(self, message: dict[str, Any], fds: list[int]) -> None:
        """Sends a fork into the box whose descriptors came with the message."""
        code = os.pread(fds[2], 1 << 20, 0)
        child = self.mover.fork(fds, code, message)
        if child == 0:
            self.serve_box(message)
        elif child < 0:
            self.answer({"ev": "entered", "id": message["id"], "status": 1})
        else:
            self.walkers[child] = (message["id"], time.monotonic() + ENTER_SECONDS)

    def reap(self) -> None:
        """Takes note of walkers that ended, and of parents of forks, which come to us when their walker has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.walkers:
                self.ended(pid, status)

    def ended(self, pid: int, status: int) -> None:
        request, _deadline = self.walkers.pop(pid)
        if status and os.waitstatus_to_exitcode(status) in self.mover.ENDED:
            status = 0
        if status:
            self.mover.explain(status)
        self.answer({"ev": "entered", "id": request, "status": status})

    def expire(self) -> None:
        """A walker that is frozen with its box ends when the box goes on; nobody waits for that."""
        now = time.monotonic()
        for pid in [pid for pid, (_id, deadline) in self.walkers.items() if now > deadline]:
            request, _deadline = self.walkers.pop(pid)
            os.kill(pid, signal.SIGKILL)
            complain("a fork did not enter its box in time")
            self.answer({"ev": "entered", "id": request, "status": signal.SIGKILL.value})

    def serve_box(self, message: dict[str, Any]) -> None:
        """In the fork, the box's own: descriptor 3 is the agent's socket, messages are dropped from here on."""
        try:
            self.sock.detach()
            self.walkers.clear()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.mover.touch()
            os.chdir(HOME if os.path.isdir(HOME) else "/")
            nursery = Nursery(_open_agent_socket(), self.kernel)
            if message["as"] == "kernel" and not (message.get("look") and staleness.changed()):
                nursery.become()
            nursery.serve()
        except BaseException as error:
            complain(f"a fork in a box failed: {error!r}")
        finally:
            os._exit(1)

    def answer(self, message: dict[str, Any]) -> None:
        self.sock.send((dumps(message) + "\n").encode())


def _note(_signum: int, _frame: Any) -> None:
    """The wake-up descriptor carries the news; Python needs a handler for it to be written."""


def _open_agent_socket() -> socket.socket:
    """The warden lets nobody send descriptors into it before it is ours; older kernels know no such thing."""
    sock = socket.socket(fileno=PROTOCOL_FD)
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 1)
    except OSError:
        pass
    return sock


def _first_steps(kernel: Kernel) -> None:
    """What a fork does in its box before anybody asks it for something."""
    kernel.open_loop()
    reseed.renew(fresh=True)
    kernel.rehearse(["1 + 1"])


def _heap_files(sock: socket.socket) -> list[int]:
    """The file for our memory, which the warden made: its first message, with descriptors to write and to read it."""
    _line, files, _flags, _address = socket.recv_fds(sock, 4096, 2)
    return files


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=PROTOCOL_FD)
    sock.set_inheritable(False)
    heap.gather()
    load()
    kernel = Kernel()
    warm(kernel)
    end_threads()
    mover = Mover()
    reseed.prepare()
    heap.settle(_heap_files(sock))
    mover.spans = heap.written(lambda: _first_steps(kernel))
    Zygote(sock, kernel, mover).serve()
