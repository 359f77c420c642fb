# SPDX-License-Identifier: Apache-2.0
"""A new version of the server keeps every template: plain ones get its runtime, ready ones the runtime they were
written under."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recipes import Order, fresh, order, run, step
from support.server import Server, own_server
from support.wire import RawBox, Wire

SERVE = "date +%s%N > /tmp/begun; exec python3 -m http.server 8202"
LISTENS = '[ -n "$(ss -Htln sport = :8202)" ]'
SIGN = "usr/lib/cloche/newer"


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server() as made:
        yield made


def newer_runtime(server: Server) -> Path:
    """The runtime of another version: the same, and one file more."""
    made = server.home / "newer"
    (staged,) = (server.data / "runtime").iterdir()
    shutil.copytree(staged, made, symlinks=True)
    (made / SIGN).write_text("newer\n")
    return made


def said(box: RawBox, line: str) -> str:
    try:
        code, out, errors = box.run(line)
        assert code == 0, errors
        return out
    finally:
        box.kill()


def serving(wire: Wire, mark: str) -> Order:
    recipe = {"fromTemplate": "code-interpreter-v1", "startCmd": SERVE, "readyCmd": LISTENS}
    return order(wire, fresh("serving"), step("ENV", "MARK", mark), **recipe).ready()


def test_a_new_runtime_invalidates_no_template(server: Server) -> None:
    mark = fresh("mark")
    plain = order(server.wire, fresh("plain"), run("echo plain > ~/word")).ready()
    ready = serving(server.wire, mark)
    begun = said(ready.box(), "cat /tmp/begun")
    before = {path.name for path in (server.data / "runtime").iterdir()}
    server.signal(signal.SIGTERM)
    server.start("--runtime", str(newer_runtime(server)))
    after = {path.name for path in (server.data / "runtime").iterdir()}
    assert before < after, "the ready template's runtime is kept beside the new one"
    wire = server.wire
    plain.wire = ready.wire = wire
    assert said(plain.box(), f"cat ~/word /{SIGN}") == "plain\nnewer\n"
    box = ready.box()
    assert box.port(8202, path="/").status == 200
    assert any(line.get("text") == "2" for line in box.execute("1 + 1"))
    assert said(box, f"cat /tmp/begun; ls /{SIGN} 2>/dev/null || true") == begun
    again = serving(wire, mark)
    assert any("Running start command" in line for line in again.log()), "memory of an older runtime is not shared"
    assert not any("CACHED [finalize]" in line for line in again.log())
    assert said(again.box(), f"cat /{SIGN}") == "newer\n"
    child = order(wire, fresh("child"), run("cat ~/word > ~/copied"), fromTemplate=plain.name).ready()
    assert said(child.box(), "cat ~/copied") == "plain\n"
