# SPDX-License-Identifier: Apache-2.0
"""criu_floor.py CRIU DIR: what criu itself takes to put a bare process tree on disk and to bring it back.

The tree is a process and its child with 60 MB between them, in no namespaces of their own, with no sockets and nothing
but /dev/null open; criu is called as its manual says, images go to DIR, which is made and removed. Runs as the first
process of a pid namespace (unshare --pid --fork --mount-proc), so that the tree's numbers are free when it comes back.
Prints {"dump_ms":[...],"restore_ms":[...],"image_mb":[...]}, and the same of a tree with 140 MB as large_*: a box whose
Python is a fork of the zygote has an image of more than 60 MB.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 6
SPACE = 0.15
# What the parent holds is dumped twice, Python itself is the rest of 60 MB; every page differs, so that none is a hole.
TREE = """
import os, sys, time
def hold(mb):
    return bytearray(os.urandom(mb * 1_000_000))
held = hold(8)
if not os.fork():
    more = hold(int(sys.argv[1]))
print("ready", flush=True)
null = os.open("/dev/null", os.O_RDWR)
for fd in (0, 1, 2):
    os.dup2(null, fd)
os.close(null)
while True:
    time.sleep(1000)
"""


def start_tree(child_mb: int) -> int:
    tree = subprocess.Popen([sys.executable, "-c", TREE, str(child_mb)], stdout=subprocess.PIPE, start_new_session=True)
    assert tree.stdout
    for _ in range(2):
        assert tree.stdout.readline() == b"ready\n"
    tree.stdout.close()
    time.sleep(0.3)
    return tree.pid


def timed(*command: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    took = (time.perf_counter() - began) * 1e3
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout.decode()[-2000:]}")
    return took


def reap(pid: int) -> None:
    """A restored tree is nobody's child, so that only the dumped one is waited for by name."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0 and not Path(f"/proc/{pid}").exists():
                return
        except ChildProcessError:
            return
        time.sleep(0.005)


def measure(criu: str, place: Path, child_mb: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {"dump_ms": [], "restore_ms": [], "image_mb": []}
    tree = start_tree(child_mb)
    place.mkdir()
    try:
        for number in range(ROUNDS):
            images = place / str(number)
            images.mkdir()
            common = ["--tree", str(tree), "--images-dir", str(images), "--manage-cgroups=ignore"]
            time.sleep(SPACE)
            samples["dump_ms"].append(timed(criu, "dump", *common))
            reap(tree)
            samples["image_mb"].append(sum(file.stat().st_size for file in images.iterdir()) / 1e6)
            time.sleep(SPACE)
            samples["restore_ms"].append(
                timed(criu, "restore", "--images-dir", str(images), "--manage-cgroups=ignore", "--restore-detached")
            )
            shutil.rmtree(images)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.killpg(tree, signal.SIGKILL)
    return samples


def main(criu: str, place: Path) -> None:
    samples = measure(criu, place, 30)
    samples |= {f"large_{name}": values for name, values in measure(criu, place, 110).items()}
    print(json.dumps(samples))


main(sys.argv[1], Path(sys.argv[2]))
