# SPDX-License-Identifier: Apache-2.0
"""A server in a world of its own whose guests are emulated: this machine's KVM, if any, is not asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import own_server
from support.world import Abroad, World

ROOT = Path(__file__).parents[4]
MAKE_SECONDS = 600
# Guests are made for x86-64 only (scripts/microvm).
collect_ignore_glob = [] if os.uname().machine == "x86_64" else ["test_*"]


@pytest.fixture(scope="session")
def parts() -> str:
    """QEMU and the guest's kernel; scripts/deps test has installed what this needs."""
    made = subprocess.run(
        [ROOT / "scripts/microvm"], stdout=subprocess.PIPE, text=True, check=True, timeout=MAKE_SECONDS
    )
    return made.stdout.strip()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def server(world: World, parts: str) -> Iterator[Abroad]:
    flags = ("--microvm", parts, "--microvm-emulation", "on", "--pool", "0", "--gates", "1")
    with own_server(*flags, made=Abroad(world)) as made:
        yield made
