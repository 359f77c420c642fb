# SPDX-License-Identifier: Apache-2.0
"""A clock that is set while the server runs: sandboxes live as long as they were given, neither longer nor shorter.

The server's processes get another time of day from a small library that is loaded before the C library and adds an
offset from a file; the machine's clock is left alone.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paused import state
from support.server import Server, own_server
from support.waiting import eventually

SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset;
__attribute__((constructor)) static void begin(void)
{
  const char *path = getenv("TEST_CLOCK");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (p != MAP_FAILED)
    offset = p;
  if (fd >= 0)
    close(fd);
}
int clock_gettime(clockid_t id, struct timespec *t)
{
  int r = (int)syscall(SYS_clock_gettime, id, t);
  if (!r && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    t->tv_sec += *offset;
  return r;
}
"""


class Clock:
    def __init__(self, home: Path) -> None:
        self.file = home / "offset"
        self.set(0)

    def set(self, seconds: int) -> None:
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("q", seconds))


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    library = tmp_path / "clock.so"
    (tmp_path / "clock.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(tmp_path / "clock.c")], check=True)
    tmp_path.chmod(0o755)
    made = Clock(tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("TEST_CLOCK", str(made.file))
    return made


@pytest.fixture
def server(clock: Clock) -> Iterator[Server]:
    with own_server("--gates", "1", "--pool", "0") as made:
        os.environ.pop("LD_PRELOAD")  # only the server's, and only from its start
        yield made


def test_a_clock_that_is_set_neither_lengthens_nor_shortens_a_life(server: Server, clock: Clock) -> None:
    short, long = server.wire.create(timeout=8), server.wire.create(timeout=600)
    began = time.monotonic()
    clock.set(-7200)
    eventually(lambda: state(short) is None, 60, state=server.log)
    assert time.monotonic() - began < 40  # not two hours later
    clock.set(+7200)
    another = server.wire.create(timeout=600)
    time.sleep(2)  # a timer that looked at the time of day would have ended them
    assert state(long) == "running"
    assert state(another) == "running"
    assert server.wire.call("POST", f"/sandboxes/{long.id}/timeout", {"timeout": 600}).status == 204
    assert long.run("echo alive")[1] == "alive\n"
    clock.set(0)
    for box in (long, another):
        assert box.run("echo alive")[1] == "alive\n"
        box.kill()
