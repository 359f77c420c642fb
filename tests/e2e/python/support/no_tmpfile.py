# SPDX-License-Identifier: Apache-2.0
"""no_tmpfile.py CMD [ARG...] - run CMD as if no filesystem had files without a name (O_TMPFILE), as NFS is."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, AND, EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
OPENAT = {"x86_64": 257, "aarch64": 56}[platform.machine()]


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def lose() -> None:
    steps = [
        (LOAD, 0, 0, 0),  # the number of the call
        (EQUAL, 0, 4, OPENAT),
        (LOAD, 0, 0, 16 + 2 * 8),  # its flags
        (AND, 0, 0, os.O_TMPFILE),
        (EQUAL, 0, 1, os.O_TMPFILE),
        (RETURN, 0, 0, ERRNO | errno.EOPNOTSUPP),
        (RETURN, 0, 0, ALLOW),
    ]
    program = Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    lose()
    os.execvp(sys.argv[1], sys.argv[1:])
