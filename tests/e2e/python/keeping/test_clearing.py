# SPDX-License-Identifier: Apache-2.0
"""What goes by itself: unstarted builds, failures of long ago, and layers that nothing needs, also while others are
built."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recipes import Order, fresh, order, run
from support.server import Server, binary, own_server
from support.waiting import eventually

DAY = 86400


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server("--build-wait-seconds", "5", "--pool", "0") as made:
        yield made


def clear(server: Server, *words: str) -> str:
    done = subprocess.run(
        [binary(), "template", "gc", *words, "--data", str(server.data)], capture_output=True, text=True, check=True
    )
    return done.stdout


def layers(server: Server) -> set[str]:
    return {entry.name for entry in (server.data / "layers").iterdir() if not entry.name.startswith(".")}


def age(server: Server, names: set[str], days: int = 30) -> None:
    then = time.time() - days * DAY
    for name in names:
        os.utime(server.data / "layers" / name, (then, then))


def test_a_build_that_is_never_started_expires(server: Server) -> None:
    late, soon = Order(server.wire, fresh("late")).request(), Order(server.wire, fresh("soon")).request()
    assert late.status()["status"] == "waiting"
    soon.start(run("true")).ready()
    eventually(lambda: late.status()["status"] == "error")
    now = late.status()
    assert "build_wait_seconds" in now["reason"]["message"]
    refused = late.try_start({"steps": [], "fromTemplate": "base"})
    assert refused.status == 400
    assert "expired" in refused.json()["message"]
    assert soon.status()["status"] == "ready"


def test_failures_are_forgotten_after_their_days(server: Server) -> None:
    old, young = (order(server.wire, fresh("fails"), run("echo last words; false")) for _ in range(2))
    good = order(server.wire, fresh("good"), run("echo fine")).ready()
    old.failed()
    young.failed()
    server.stop()
    with sqlite3.connect(server.data / "cloche.db") as db:
        long_ago = int((time.time() - 31 * DAY) * 1e6)
        assert (
            db.execute("UPDATE job SET finished=? WHERE id IN (?,?)", (long_ago, old.build, good.build)).rowcount == 2
        )
    server.start()
    for build in (young, good):
        build.wire = server.wire
    path = f"/templates/{old.template}/builds/{old.build}/status"
    assert server.wire.call("GET", path).status == 400
    assert not (server.data / "builds" / f"{old.build}.log").exists()
    assert any("last words" in line for line in young.log())
    assert good.status()["status"] == "ready"
    assert any("fine" in line for line in good.log())


def test_the_dry_run_tells_sizes_and_removes_nothing(server: Server) -> None:
    order(server.wire, fresh("sized"), run("head -c 3000000 /dev/urandom > ~/big; exit 1"), keep=True).failed()
    build = order(server.wire, fresh("gone"), run("head -c 5000000 /dev/urandom > ~/big")).ready()
    kept = layers(server)
    assert server.wire.call("DELETE", f"/templates/{build.template}").status == 204
    age(server, kept)
    said = clear(server, "--dry-run").splitlines()
    assert [line for line in said if line.strip().startswith("4.8 MiB")], said
    assert said[-1] == "would remove 1 things, 4.8 MiB"
    assert layers(server) == kept
    assert "removed 1 things" in clear(server)
    assert len(layers(server)) == len(kept) - 1


def test_a_running_build_keeps_what_it_stands_on_and_nothing_else(server: Server) -> None:
    """Steps found in the cache, the base and steps made meanwhile stay, whatever their age was; another's cache
    goes."""
    steps = [run("echo one > ~/one"), run("echo two > ~/two")]
    first = order(server.wire, fresh("first"), *steps).ready()
    used = layers(server)
    other = order(server.wire, fresh("other"), run("echo other > ~/other")).ready()
    spare = layers(server) - used
    parent = order(server.wire, fresh("parent"), run("echo base > ~/base")).ready()
    base = layers(server) - used - spare
    for build in (first, other):
        assert server.wire.call("DELETE", f"/templates/{build.template}").status == 204
    age(server, used | spare | base)
    child = order(server.wire, fresh("child"), run("sleep 8; cat ~/base"), fromTemplate=parent.name)
    again = order(server.wire, fresh("again"), *steps, run("sleep 8; cat ~/one ~/two"))
    eventually(lambda: sum("CACHED" in line for line in again.log()) == 2, state=again.log)
    eventually(lambda: len(child.log()) >= 3, state=child.log)
    assert "removed 1 things" in clear(server)
    assert layers(server) & (used | spare | base) == used | base
    again.ready()
    child.ready()
    assert [line.split("]: ")[-1] for line in again.log() if "]: " in line][-2:] == ["one", "two"]
    for build, wanted in ((again, "one\ntwo\n"), (child, "base\n")):
        box = build.box()
        try:
            assert box.run("cat ~/one ~/two 2>/dev/null || cat ~/base")[1] == wanted
        finally:
            box.kill()


def test_a_deleted_base_stays_while_its_child_is_built(server: Server) -> None:
    parent = order(server.wire, fresh("parent"), run("echo base > ~/base")).ready()
    base = layers(server)
    child = order(server.wire, fresh("child"), run("echo begun; sleep 4; cat ~/base"), fromTemplate=parent.name)
    eventually(lambda: any(line.endswith("]: begun") for line in child.log()))
    assert server.wire.call("DELETE", f"/templates/{parent.template}").status == 204
    age(server, base)
    assert "removed 0 things" in clear(server)
    child.ready()
    assert any(line.endswith("]: base") for line in child.log())


def test_paths_of_the_log_are_only_of_known_builds(server: Server) -> None:
    build = order(server.wire, fresh("logged"), run("true")).ready()
    assert [path.name for path in Path(server.data / "builds").iterdir()] == [f"{build.build}.log"]
    assert server.wire.call("DELETE", f"/templates/{build.template}").status == 204
    assert list(Path(server.data / "builds").iterdir()) == []
