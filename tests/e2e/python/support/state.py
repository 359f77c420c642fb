# SPDX-License-Identifier: Apache-2.0
"""What a server leaves on the machine: mounts, cgroups, links, loop devices, processes.

Each thing is named by a line of text, so that two looks can be compared and the
difference reads as the list of what leaked.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import sqlite3
import time
from pathlib import Path

INSTANCES: dict[str, str] = {}


def instance(data: str) -> str | None:
    """The name a server on this data directory gives to everything it makes on the machine."""
    if data not in INSTANCES and (Path(data) / "cloche.db").exists():
        with sqlite3.connect(f"file:{data}/cloche.db?mode=ro", uri=True) as base:
            row = base.execute("SELECT value FROM meta WHERE name='instance'").fetchone()
        if row:
            INSTANCES[data] = "cloche-" + (row[0].decode() if isinstance(row[0], bytes) else row[0])
    return INSTANCES.get(data)


def below(top: Path, pattern: str) -> list[Path]:
    """Files and folders of such a name. A server makes and removes others meanwhile, over which rglob stumbles."""
    return [
        Path(folder, name)
        for folder, folders, files in os.walk(top)
        for name in fnmatch.filter(folders + files, pattern)
    ]


def mounts(data: str) -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {f"mount {line}" for line in lines if data in line}


def cgroups(data: str) -> set[str]:
    found = set()
    ours = instance(data)
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found |= {f"cgroup {folder}/{name}" for name in names if ours and ours in f"{folder}/{name}"}
    return found


def links(data: str) -> set[str]:
    """Their names begin with a sum of the server's name: another server's links are none of ours."""
    if not (ours := instance(data)):
        return set()
    prefix = "c" + hashlib.sha256(ours.removeprefix("cloche-").encode()).hexdigest()[:6]
    return {f"link {name}" for name in os.listdir("/sys/class/net") if name.startswith(prefix)}


def loops(data: str) -> set[str]:
    found = set()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            file = backing.read_text().strip()
        except OSError:
            continue
        if file.startswith(data):
            found.add(f"loop {backing.parts[3]} {file}")
    return found


def holds(entry: Path, data: str) -> bool:
    """A criu, or a helper of one, that has files of this data directory open: nothing else tells whose it is."""
    try:
        if (entry / "comm").read_text() != "criu\n":
            return False
        return any(data in os.readlink(link) for link in (entry / "fd").iterdir())
    except OSError:
        return False


def processes(data: str) -> set[str]:
    """Processes that were started with this data directory or live on files under it."""
    found = set()
    ours = instance(data)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == str(os.getpid()):
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            root = next(
                line for line in (entry / "mountinfo").read_text().splitlines()
                if line.split()[4] == "/"
            )  # fmt: skip
            groups = (entry / "cgroup").read_text()
        except (OSError, StopIteration):
            continue
        if data in command or data in root or (ours and ours in groups) or holds(entry, data):
            found.add(f"process {entry.name} {command.strip()}")
    return found


def look(data: str) -> set[str]:
    return mounts(data) | cgroups(data) | links(data) | loops(data) | processes(data)


def leaked(before: set[str], data: str, seconds: float = 60) -> set[str]:
    """What is there that was not before, once it stops shrinking to nothing."""
    deadline = time.monotonic() + seconds
    while True:
        left = look(data) - before
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)
