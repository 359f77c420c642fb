# SPDX-License-Identifier: Apache-2.0
"""Cloche-Private-Env: a process gets its variables, and no list shows them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.wire import RawBox, Wire

COMMAND = {"cmd": "/bin/sh", "args": ["-c", 'echo "$SECRET"; exec sleep 600'], "envs": {"SECRET": "s3cret"}}


def config_of(box: RawBox, pid: int) -> dict[str, Any]:
    listed = box.rpc("process.Process/List", {})
    (found,) = [p for p in listed.json()["processes"] if p["pid"] == pid]
    return found["config"]


def started(frames: Any) -> tuple[int, str]:
    """The pid of a process and the first thing it printed."""
    pid = next(frames).json()["event"]["start"]["pid"]
    return pid, base64.b64decode(next(frames).json()["event"]["data"]["stdout"]).decode()


OPEN = {"SECRET": "s3cret"}


@pytest.mark.parametrize(("header", "shown"), [("true", {}), (None, OPEN), ("no", OPEN)])
def test_only_a_process_that_asks_for_it_hides_its_variables(
    raw: RawBox, header: str | None, shown: dict[str, str]
) -> None:
    sent = {"Cloche-Private-Env": header} if header else {}
    with raw.open_stream("process.Process/Start", {"process": COMMAND, "stdin": False}, sent) as frames:
        pid, said = started(frames)
        assert said == "s3cret\n"
        assert config_of(raw, pid).get("envs", {}) == shown
        with raw.open_stream("process.Process/Connect", {"process": {"pid": pid}}) as again:
            assert next(again).json() == {"event": {"start": {"pid": pid}}}
        raw.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})


def test_they_stay_hidden_after_a_pause(wire: Wire) -> None:
    box = wire.create(timeout=120)
    try:
        sent = {"Cloche-Private-Env": "true"}
        with box.open_stream("process.Process/Start", {"process": COMMAND, "stdin": False}, sent) as frames:
            pid, _ = started(frames)
        assert wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 120}).status in (200, 201)
        assert "envs" not in config_of(box, pid)
    finally:
        box.kill()
