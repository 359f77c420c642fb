# SPDX-License-Identifier: Apache-2.0
"""Why a sandbox is gone, as users of both stock SDKs see it, for each cause that a server knows.

The 502 of the edge reaches them word by word; only a command of JS 2.51 has words of its own ("Sandbox is probably not
running anymore"). Of a connect both SDKs show words of their own ("Paused sandbox ID not found"); what the server said
is in the body of the 404, for whoever looks.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest
from packaging.version import Version

from support.reboot import power_off
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import RawBox, Wire

JS = Path(__file__).resolve().parents[2] / "js"
WHEN = r"it ended at \d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00), "
# Memory that stays when its process is killed for it.
HOG = (
    "import ctypes as c; l = c.CDLL(None); l.shmat.restype = c.c_void_p; "
    "l.shmget.argtypes = (c.c_int, c.c_size_t, c.c_int); "
    "p = l.shmat(l.shmget(0, 1 << 31, 0o1600), None, 0); c.memset(p, 1, 1 << 31)"
)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with own_server("--pool", "1") as made:
        yield made


def gone(box: RawBox) -> bool:
    return box.wire.call("GET", f"/sandboxes/{box.id}").status == 404


def python_says(box: RawBox) -> list[Exception]:
    access = {"api_key": box.wire.key, "api_url": box.wire.url, "sandbox_url": box.wire.url}
    sdk = e2b.Sandbox(
        sandbox_id=box.id,
        sandbox_domain=None,
        envd_version=Version("0.6.13"),
        envd_access_token=box.token,
        traffic_access_token=None,
        connection_config=e2b.ConnectionConfig(**access, extra_sandbox_headers=box.headers()),
    )
    caught = []
    for call in (lambda: sdk.files.read("/etc/hostname"), lambda: sdk.commands.run("true")):
        with pytest.raises(e2b.SandboxNotRunningException) as error:
            call()
        caught.append(error.value)
    with pytest.raises(e2b.SandboxNotFoundException):
        e2b.Sandbox.connect(box.id, **access)
    return caught


def js_says(box: RawBox) -> dict[str, dict[str, str]]:
    url = box.wire.url
    names = {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": box.wire.key or ""}
    done = subprocess.run(
        ["node", str(JS / "support" / "gone.mjs"), box.id, box.token],
        capture_output=True, text=True, timeout=60, check=True, env=os.environ | names,
    )  # fmt: skip
    return json.loads(done.stdout)


def everybody_is_told(box: RawBox, edge: str, api: str | None = None) -> None:
    """`edge` and `api`: the cause as everybody is told, and as its team is."""
    for error in python_says(box):
        assert re.search(f"was not found: {WHEN}{edge}", str(error)), str(error)
    js = js_says(box)
    assert re.search(f"was not found: {WHEN}{edge}", js["file"]["message"]), js
    assert js["command"]["name"] == "SandboxNotFoundError", js
    assert js["connect"]["name"] == "SandboxNotFoundError", js
    for path in (f"/sandboxes/{box.id}/connect", f"/v2/sandboxes/{box.id}/connect"):
        got = box.wire.call("POST", path, {"timeout": 60})
        assert got.status == 404
        assert re.search(f"{WHEN}{api or edge}", got.json()["message"]), got.body


def test_a_timeout(own: Server) -> None:
    box = own.wire.create(timeout=1)
    eventually(lambda: gone(box))
    everybody_is_told(box, "timeout: its lifetime of 1 s was over")


def test_a_timeout_after_a_pause(own: Server) -> None:
    box = own.wire.create(timeout=60)
    assert own.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
    assert own.wire.call("POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": 2}).status == 201
    eventually(lambda: gone(box))
    everybody_is_told(box, "timeout: its lifetime of 2 s since it was resumed was over")


def test_a_kill_names_its_key_to_the_team(own: Server, unique: str) -> None:
    key = own.wire.call("POST", "/api-keys", {"name": f"killer-{unique}"}).json()
    for paused in (False, True):
        box = own.wire.create(timeout=60)
        if paused:
            assert own.wire.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert Wire(own.url, key["key"]).call("DELETE", f"/sandboxes/{box.id}").status == 204
        everybody_is_told(box, "killed: by request", f"killed: by API key 'killer-{unique}'")


def test_a_box_that_used_all_of_its_memory(own: Server) -> None:
    box = own.wire.create(timeout=60)
    assert box.run("echo 1000 > /proc/1/oom_score_adj", user="root")[0] == 0  # the agent is not the last to go

    def used_up() -> bool:
        box.run(f"python3 -c '{HOG}'")
        return gone(box)

    eventually(lambda: gone(box) or used_up())
    everybody_is_told(box, r"out of memory: the box used all of its \d+ MB and the kernel ended ")


def test_a_crash(own: Server) -> None:
    box = own.wire.create(timeout=60)
    with sqlite3.connect(f"file:{own.data}/cloche.db?mode=ro", uri=True) as db:
        (agent,) = db.execute("SELECT pid FROM box WHERE id=?", (box.id,)).fetchone()
    os.kill(agent, signal.SIGKILL)
    eventually(lambda: gone(box))
    everybody_is_told(box, "crashed: its first process ended unexpectedly")


def test_a_lost_node_and_a_deleted_template() -> None:
    with own_server("--pool", "1") as server:
        lost, orphan = server.wire.create(timeout=600), server.wire.create(timeout=600)
        assert server.wire.call("POST", f"/sandboxes/{orphan.id}/pause").status == 204
        power_off(server)
        with sqlite3.connect(server.data / "cloche.db") as db:  # as after a restore of a database without the template
            db.execute("UPDATE box SET build='gone' WHERE id=?", (orphan.id,))
        server.start(*server.flags)
        everybody_is_told(RawBox(server.wire, lost.made), "lost: its node was restarted or crashed")
        everybody_is_told(RawBox(server.wire, orphan.made), "lost: its template was deleted")
