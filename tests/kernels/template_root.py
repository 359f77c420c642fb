# SPDX-License-Identifier: Apache-2.0
"""A throwaway root directory made of template layers, for running kernels as boxes see them.

The mounts live in a mount namespace of the test process, so they vanish with it however it ends.
Nothing is written to the layers: changes go to an upper directory on a tmpfs.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

STORE = Path(os.environ.get("CLOCHE_CACHE", "/var/cache/cloche"))
TEMPLATE = "code-interpreter-v1"
CLONE_NEWNS = 0x00020000


def store_layers() -> list[str]:
    """The layers of the default template in the build store, top first; empty if not built."""
    try:
        description = json.loads((STORE / "templates" / f"{TEMPLATE}.json").read_text())
    except (OSError, ValueError):
        return []
    names = [n if isinstance(n, str) else n["hash"] for n in description["layers"]]
    layers = [str(STORE / "layers" / name / "fs") for name in names]
    return layers if all(os.path.isdir(layer) for layer in layers) else []


def wanted_layers() -> list[str]:
    """What CLOCHE_KERNEL_ROOT names: `template`, or directories joined by colons, top first."""
    named = os.environ.get("CLOCHE_KERNEL_ROOT", "")
    if named == "template":
        return store_layers()
    return [d for d in named.split(":") if d]


def has_file(layers: list[str], path: str) -> bool:
    return any(os.path.lexists(layer + path) for layer in layers)


def mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)


@cache
def mounted_root(layers: tuple[str, ...], kernels: Path) -> str:
    """Mounts the layers under a fresh upper directory, once a process; returns the root."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare of the mount namespace")
    mount("--make-rprivate", "/")
    base = Path(tempfile.mkdtemp(prefix="kernel-root-"))
    mount("-t", "tmpfs", "tmpfs", str(base))
    for name in ("upper", "work", "root"):
        (base / name).mkdir()
    root = str(base / "root")
    lower = ":".join(layers)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={base}/upper,workdir={base}/work", root)
    for place in ("proc", "dev", "dev/pts", "dev/shm", "tmp", "home/user", "usr/lib/cloche"):
        os.makedirs(f"{root}/{place}", exist_ok=True)
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("--bind", "/dev", f"{root}/dev")
    mount("-t", "devpts", "devpts", f"{root}/dev/pts", "-o", "newinstance,ptmxmode=0666")
    shutil.copytree(kernels, f"{root}/usr/lib/cloche/kernels", dirs_exist_ok=True)
    return root
