# SPDX-License-Identifier: Apache-2.0
"""No file, directory, control group or loop device of the host is named after a sandbox ID."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, own_server
from support.state import cgroups


@pytest.fixture
def bare() -> Iterator[Server]:
    """A server that makes nothing ahead: each box is born for its own create."""
    with own_server("--pool", "0", "--nets-ready", "0", "--pool-spare-percent", "0") as made:
        yield made


def named_after(server: Server, box: str) -> list[str]:
    found = [f"{folder}/{name}" for folder, folders, files in os.walk(server.data) for name in folders + files]
    found += cgroups(str(server.data))
    found += [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [path for path in found if box in path]


def test_names_on_the_host_are_no_sandbox_ids(bare: Server) -> None:
    wire = bare.wire
    box = wire.create(timeout=300)
    forks = wire.call("POST", f"/sandboxes/{box.id}/fork", {"count": 1, "timeout": 300}).json()
    ids = [box.id, forks[0]["sandbox"]["sandboxID"]]
    assert [path for one in ids for path in named_after(bare, one)] == []
    assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    shot = wire.call("POST", f"/sandboxes/{ids[1]}/snapshots", {})
    assert shot.status == 201, shot.body
    assert any((bare.data / "checkpoints").iterdir())
    assert [path for one in ids for path in named_after(bare, one)] == []
    bare.signal(signal.SIGTERM)
    bare.start("--pool", "0", "--nets-ready", "0", "--pool-spare-percent", "0")
    wire = bare.wire
    assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
    assert wire.call("GET", f"/sandboxes/{ids[1]}").json()["state"] == "running"
    assert [path for one in ids for path in named_after(bare, one)] == []
