# SPDX-License-Identifier: Apache-2.0
"""What the checkpoint suites share: calls on the life of a box, and boxes with things to lose."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from support.waiting import eventually
from support.wire import Answer, RawBox

# Counts in a file that is always whole, for ever.
COUNTING = "n=0; while :; do n=$((n+1)); echo $n > /tmp/next; mv /tmp/next /tmp/count; sleep 0.02; done"


def pause(box: RawBox, **body: Any) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/pause", body)


def connect(box: RawBox, timeout: int = 60, path: str = "/sandboxes", **body: Any) -> Answer:
    return box.wire.call("POST", f"{path}/{box.id}/connect", {"timeout": timeout} | body)


def fork(box: RawBox, **body: Any) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/fork", body)


def snapshot(box: RawBox, **body: Any) -> Answer:
    return box.wire.call("POST", f"/sandboxes/{box.id}/snapshots", body)


def detail(box: RawBox) -> dict[str, Any]:
    got = box.wire.call("GET", f"/sandboxes/{box.id}")
    assert got.status == 200, (got.status, got.body)
    return got.json()


def state(box: RawBox) -> str | None:
    got = box.wire.call("GET", f"/sandboxes/{box.id}")
    return got.json()["state"] if got.status == 200 else None


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def pause_and_resume(box: RawBox) -> None:
    """One pause and one resume."""
    got = pause(box)
    assert got.status == 204, (got.status, got.body)
    got = connect(box)
    assert got.status == 201, (got.status, got.body)


def count_of(box: RawBox) -> int:
    return int(box.run("cat /tmp/count")[1])


def counts_on(box: RawBox) -> int:
    """The counting process of the box is alive; its latest number."""
    first = eventually(lambda: box.run("cat /tmp/count 2>/dev/null")[1].strip())
    return eventually(lambda: (now := count_of(box)) > int(first) and now)


def start_counting(box: RawBox) -> None:
    box.run(f"setsid bash -c '{COUNTING}' >/dev/null 2>&1 </dev/null &")
    counts_on(box)


def text_of(events: list[dict[str, Any]]) -> str:
    """The main result of a cell, or what went wrong as words."""
    for event in events:
        if event["type"] == "error":
            raise AssertionError(event.get("traceback") or event)
    results = [event["text"] for event in events if event["type"] == "result" and event.get("is_main_result")]
    return results[-1] if results else ""


TRACER = (
    "import ctypes, os, time\\n"
    "libc = ctypes.CDLL(None, use_errno=True)\\n"
    "pid = os.fork()\\n"
    "if pid == 0:\\n"
    "    time.sleep(600)\\n"
    "time.sleep(0.2)\\n"
    "done = libc.ptrace(16, pid, 0, 0)\\n"
    "open('/tmp/traced', 'w').write(str(done))\\n"
    "os.waitpid(pid, 0x40000000)\\n"
    "libc.ptrace(7, pid, 0, 0)\\n"
    "time.sleep(600)\\n"
)


def start_tracing(box: RawBox) -> None:
    """Leaves a process in the box that no image can hold."""
    box.run(
        f'printf "{TRACER}" > /tmp/tracer.py; setsid python3 /tmp/tracer.py >/dev/null 2>&1 </dev/null &', user="root"
    )
    traced = eventually(lambda: box.run("cat /tmp/traced 2>/dev/null")[1].strip())
    assert traced == "0", "a process of a box may trace its own child"
