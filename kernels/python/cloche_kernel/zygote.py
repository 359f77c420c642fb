"""The zygote: a nursery outside all boxes, whose forks move into boxes and are kernels or nurseries there.

It runs as a host user without rights, in namespaces of its own, on a read-only view of the template. The
warden makes each box's user namespace belong to that user, so a fork of ours may enter it: it joins the box's control
groups, its namespaces and its root identity, loads the box's system call filter, gives up the capabilities a box's root
does not have, and then serves the box's agent: as the first kernel, or as a nursery where more than one is wanted.
No user code runs before all that is done.
"""

import array
import ctypes
import errno
import os
import resource
import select
import signal
import socket
from typing import Any

from . import ground, heap, renewal
from .kernel import PROTOCOL_FD, Kernel
from .nursery import Nursery, end_threads, load, warm
from .outlet import complain
from .wire import Wire, dumps

HOME = "/home/user"
SYS_SECCOMP, SYS_KEYCTL, SYS_CAPSET, SYS_ARCH_PRCTL = 317, 250, 126, 158  # x86-64
ARCH_GET_FS, PR_GET_TID_ADDRESS = 0x1003, 40
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4
KEYCTL_JOIN_SESSION_KEYRING = 1
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWTIME = 0x80
EVERY_NAMESPACE = (
    os.CLONE_NEWUSER
    | os.CLONE_NEWNS
    | os.CLONE_NEWNET
    | os.CLONE_NEWIPC
    | os.CLONE_NEWUTS
    | os.CLONE_NEWPID
    | os.CLONE_NEWCGROUP
)

libc = ctypes.CDLL(None, use_errno=True)


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def _call(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _load_filter(code: bytes) -> None:
    text = ctypes.create_string_buffer(code, len(code))
    program = FilterProgram(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    _call("seccomp", libc.syscall(SYS_SECCOMP, 1, 0, ctypes.byref(program)))


def _keep_capabilities(mask: int) -> None:
    for capability in range(64):
        if not mask >> capability & 1:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # unknown numbers are refused, which is fine
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _call("capset", libc.syscall(SYS_CAPSET, header, data))
    _call("ambient", libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))


def _enter_time(pidfd: int) -> None:
    """A box that was restored has clocks of its own, to be entered by who has memory of its own; others have the host's,
    which nobody may enter and everybody is in."""
    if libc.setns(pidfd, CLONE_NEWTIME) < 0 and ctypes.get_errno() not in (errno.EPERM, errno.EINVAL):
        number = ctypes.get_errno()
        raise OSError(number, f"entering the box's clocks: {os.strerror(number)}")


def fork_twice(pidfd: int) -> int:
    """A fork that enters the box, and a fork of a fork of it that is born there: 0 in the last, the first's pid here."""
    child = os.fork()
    if child > 0:
        return child
    try:
        os.setns(pidfd, EVERY_NAMESPACE)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        for _ in range(2):  # an orphan of the box's own goes to the box's first process, see move.c
            if os.fork() > 0:
                os._exit(0)
    except BaseException as error:
        complain(f"a fork could not enter its box: {error!r}")
        os._exit(1)
    return 0


class Move(ctypes.Structure):
    """What move.c is told, and tells."""

    _fields_ = [
        ("box", ctypes.c_int32),
        ("namespaces", ctypes.c_int32),
        ("tid_place", ctypes.c_uint64),
        ("rseq_place", ctypes.c_uint64),
        ("step", ctypes.c_int32),
        ("error", ctypes.c_int32),
    ]


class Mover:
    """fork_twice with one copy of our memory instead of two: see move.c."""

    ENDED = ((1, errno.ESRCH), (4, errno.ENOMEM))  # no such process; its pid namespace takes no more
    STEPS = ("", "entering its namespaces", "groups", "identity", "fork")

    def __init__(self) -> None:
        self.library = ctypes.PyDLL(os.path.join(os.path.dirname(__file__), "move.so"))
        self.library.move_fork.restype = ctypes.c_long
        self.python = ctypes.pythonapi
        tid = ctypes.c_uint64()
        _call("thread id", libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(tid), 0, 0, 0))
        self.tid_place = tid.value
        self.rseq_place = _rseq_place()
        self.box_ended = False  # meanwhile: nobody's fault
        self.spans: ctypes.Array[heap.Span] = (heap.Span * 0)()

    def fork(self, pidfd: int) -> int:
        """0 in the fork; here the pid of a process that has ended, or -1."""
        move = Move(pidfd, EVERY_NAMESPACE, self.tid_place, self.rseq_place)
        self.python.PyOS_BeforeFork()
        child = self.library.move_fork(ctypes.byref(move))
        if child == 0:
            self.python.PyOS_AfterFork_Child()
            return 0
        self.python.PyOS_AfterFork_Parent()
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # its changes of identity were made on our memory
        self.box_ended = (move.step, move.error) in self.ENDED
        if child < 0 or (move.step and not self.box_ended):
            complain(f"a fork could not enter its box: {self.STEPS[move.step]}: {os.strerror(move.error or -child)}")
        return child if child > 0 else -1

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


def _mover() -> Mover | None:
    try:
        return Mover()
    except OSError as error:
        complain(f"forks copy their memory twice: {error!r}")
        return None


class Zygote:
    def __init__(self, sock: socket.socket, kernel: Kernel, mover: Mover | None) -> None:
        self.sock = sock
        self.mover = mover
        self.kernel = kernel
        self.wire = Wire(sock)
        self.fds: list[int] = []

    def serve(self) -> None:
        self.answer({"ev": "ready", "pid": os.getpid()})
        watch = select.poll()
        watch.register(self.sock, select.POLLIN)
        while True:
            watch.poll()
            if not self.receive():
                os._exit(0)

    def receive(self) -> bool:
        space = socket.CMSG_SPACE(16 * array.array("i").itemsize)
        data, ancillary, _flags, _address = self.sock.recvmsg(64 * 1024, space)
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self.fds.extend(numbers)
        self.wire.received += data
        while (message := self.wire.take()) is not None:
            if message.get("op") == "enter":
                self.enter(message)
        return bool(data)

    def enter(self, message: dict[str, Any]) -> None:
        """Sends a fork into the box whose descriptors came with the message."""
        count = message["fds"]
        fds, self.fds = self.fds[:count], self.fds[count:]
        sock, pidfd, program, *groups = fds
        code = os.read(program, 1 << 20)
        child = self.mover.fork(pidfd) if self.mover else fork_twice(pidfd)
        if child == 0:
            self.serve_box(sock, pidfd, code, groups, message)
        for fd in fds:
            os.close(fd)
        _pid, status = os.waitpid(child, 0) if child > 0 else (0, 1)
        if self.mover and self.mover.box_ended:
            status = 0
        self.answer({"ev": "entered", "id": message["id"], "status": status})

    def serve_box(self, sock: int, pidfd: int, code: bytes, groups: list[int], message: dict[str, Any]) -> None:
        """In the fork, inside the box's walls."""
        try:
            for group in groups:
                os.write(group, b"0")
            if message["as"] == "nursery":
                _enter_time(pidfd)
            if self.mover:
                self.mover.touch()
            self.settle(message)
            _load_filter(code)
            _keep_capabilities(int(message["caps"]))
            self.connect(sock)
            nursery = Nursery(socket.socket(fileno=PROTOCOL_FD), self.kernel)
            if message["as"] == "kernel" and not (message.get("look") and ground.changed()):
                nursery.become()
            nursery.serve()
        except BaseException as error:
            complain(f"a fork in a box failed: {error!r}")
        finally:
            os._exit(1)

    def settle(self, message: dict[str, Any]) -> None:
        """Session, limits and directory as the agent would have given them."""
        os.setsid()
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # a change of identity hides /proc/self from its new owner
        libc.syscall(SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None)
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        hard = min(hard, int(message["files"]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("0")
        os.umask(0o022)
        os.chdir(HOME if os.path.isdir(HOME) else "/")

    def connect(self, sock: int) -> None:
        """The agent's socket on 3, nothing on 0 to 2; complaints go nowhere from here on."""
        null = os.open("/dev/null", os.O_RDWR)
        self.sock.detach()
        for target in (0, 1, 2):
            os.dup2(null, target, inheritable=True)
        os.dup2(sock, PROTOCOL_FD, inheritable=False)
        os.closerange(PROTOCOL_FD + 1, 256)

    def answer(self, message: dict[str, Any]) -> None:
        self.wire.send(dumps(message) + "\n")


def _first_steps(kernel: Kernel) -> None:
    """What a fork does in its box before anybody asks it for something."""
    kernel.open_loop()
    renewal.renew(fresh=True)
    kernel.rehearse(["1 + 1"])


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=PROTOCOL_FD)
    sock.set_inheritable(False)
    heap.gather()
    load()
    kernel = Kernel()
    warm(kernel)
    end_threads()
    mover = _mover()
    renewal.prepare()
    heap.settle(f"/dev/shm/cloche-heap-{os.urandom(8).hex()}")
    if mover:
        mover.spans = heap.written(lambda: _first_steps(kernel))
    Zygote(sock, kernel, mover).serve()
