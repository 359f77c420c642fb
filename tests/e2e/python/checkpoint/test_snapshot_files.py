# SPDX-License-Identifier: Apache-2.0
"""Snapshots without memory: boxes made from them have the source's files, and nothing that ran in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import e2b
import e2b_code_interpreter as interpreter
import pytest
import pytest_asyncio

from support.either import Either
from support.paused import (
    connect,
    counts_on,
    detail,
    eventually,
    pause,
    snapshot,
    start_counting,
    text_of,
)
from support.recipes import answer, fresh, order
from support.wire import RawBox, Wire

COUNTERS = "pgrep -fc '[w]hile :; do n='"


@pytest.fixture
def box(wire: Wire) -> Iterator[RawBox]:
    made = wire.create(timeout=120, metadata={"of": "source"})
    yield made
    made.kill()


def taken(box: RawBox, **body: object) -> dict:
    got = snapshot(box, **body)
    assert got.status == 201, got.body
    return got.json()


@contextmanager
def child_of(wire: Wire, reference: str) -> Iterator[RawBox]:
    child = wire.create(reference, timeout=60)
    try:
        yield child
    finally:
        child.kill()


def boot_id(box: RawBox) -> str:
    return box.run("cat /proc/sys/kernel/random/boot_id")[1]


def counters(box: RawBox) -> int:
    return int(box.run(COUNTERS)[1])


def test_files_are_kept_and_processes_are_not(wire: Wire, box: RawBox) -> None:
    start_counting(box)
    assert counters(box) > 0
    box.run("mkdir -p ~/d; echo kept > ~/d/kept; ln -s d/kept ~/link; chmod 640 ~/d/kept; rm ~/.bashrc")
    before = detail(box)
    made = taken(box, memory=False)
    assert (made["memory"], made["names"]) == (False, [])
    after = detail(box)
    assert (after["state"], after["endAt"]) == ("running", before["endAt"])
    counts_on(box)
    box.run("echo later > ~/d/kept")
    with child_of(wire, made["snapshotID"]) as child:
        assert child.run("cat ~/link; stat -c %a ~/d/kept; ls ~/.bashrc 2>/dev/null")[1] == "kept\n640\n"
        assert counters(child) == 0
        assert boot_id(child) != boot_id(box)
        assert child.token != box.token
        assert child.run("echo $E2B_SANDBOX_ID; whoami; pwd")[1] == f"{child.id}\nuser\n/home/user\n"
        assert child.port(8080).status == 502
    counts_on(box)


def test_what_was_just_written_is_in_it(wire: Wire, box: RawBox) -> None:
    """Nothing was synced by the box: large, many, mapped and deleted but open."""
    box.run(
        "head -c 30000000 /dev/urandom > ~/large; mkdir ~/many; for i in $(seq 200); do echo $i > ~/many/$i; done;"
        "python3 -c \"import mmap; f = open('mapped', 'w+b'); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192);"
        "m[4096:4100] = b'here'; import time, os; os.fork() or (os.setsid(), time.sleep(600))\" >/dev/null 2>&1;"
        "echo gone > ~/gone; setsid tail -f ~/gone >/dev/null 2>&1 </dev/null & sleep 0.3; rm ~/gone"
    )
    look = "sha256sum ~/large ~/mapped; cat ~/many/* | sort -n | sha256sum; ls ~"
    wanted = box.run(look)[1]
    with child_of(wire, taken(box, memory=False)["snapshotID"]) as child:
        assert child.run(look)[1] == wanted
        assert child.run("pgrep -x 'tail|python3'")[0] == 1


def test_connections_of_the_source_go_on(box: RawBox) -> None:
    sdk = e2b.Sandbox.connect(box.id, timeout=120)
    running = sdk.commands.run("for i in $(seq 40); do echo $i; sleep 0.05; done", background=True)
    for _ in range(3):
        taken(box, memory=False)
    assert running.wait().stdout.split() == [str(i) for i in range(1, 41)]


def test_the_start_command_begins_anew(wire: Wire) -> None:
    name = fresh("begin")
    order(
        wire, name,
        startCmd=(
        "echo begun >> ~/begun; cat /proc/sys/kernel/random/boot_id > ~/boot;"
        " exec python3 -m http.server 8200"
),
        readyCmd=e2b.wait_for_port(8200).get_cmd(),
    ).ready()  # fmt: skip
    with child_of(wire, name) as source:

        def served(box: RawBox) -> str:
            return box.port(8200, path="/begun").text

        before = served(source).count("begun")
        assert before >= 1
        cold = taken(source, memory=False)["snapshotID"]
        full = taken(source)["snapshotID"]
        assert served(source).count("begun") == before
    with child_of(wire, full) as child:
        assert served(child).count("begun") == before, "with memory it goes on"
    with child_of(wire, cold) as child:
        eventually(lambda: child.port(8200, path="/begun").status == 200, 10)
        assert served(child).count("begun") == before + 1
        assert child.run("cat ~/boot")[1] == boot_id(child)


def test_a_name_may_be_full_and_files_only_by_turns(wire: Wire, box: RawBox) -> None:
    name = fresh("turns")
    start_counting(box)
    for memory in (None, False, True, False):
        body = {} if memory is None else {"memory": memory}
        box.run(f"echo {memory} > ~/turn")
        made = taken(box, name=name, **body)
        assert made.get("memory", True) == (memory is not False)
        with child_of(wire, name) as child:
            assert child.run("cat ~/turn")[1] == f"{memory}\n"
            if memory is False:
                assert counters(child) == 0
            else:
                counts_on(child)
    tagged = taken(box, name=f"{name}:full")["snapshotID"]
    with child_of(wire, tagged) as child:
        counts_on(child)
    with child_of(wire, name) as child:
        assert counters(child) == 0, "the other tag stays files only"


def test_copies_of_copies(wire: Wire, box: RawBox) -> None:
    box.run("echo one > ~/one")
    with child_of(wire, taken(box, memory=False)["snapshotID"]) as child:
        start_counting(child)
        child.run("echo two > ~/two")
        full = taken(child)["snapshotID"]
        assert pause(child).status == 204
        assert connect(child).status == 201
        counts_on(child)
    with child_of(wire, full) as grandchild:
        counts_on(grandchild)
        assert grandchild.run("cat ~/one ~/two")[1] == "one\ntwo\n"
        cold = taken(grandchild, memory=False)["snapshotID"]
    with child_of(wire, cold) as last:
        assert last.run("cat ~/one ~/two")[1] == "one\ntwo\n"
        assert counters(last) == 0


def test_listed_and_deleted(wire: Wire, box: RawBox) -> None:
    cold, full = taken(box, memory=False)["snapshotID"], taken(box)["snapshotID"]
    rows = wire.call("GET", f"/snapshots?sandboxID={box.id}").json()
    assert {row["snapshotID"]: row.get("memory", True) for row in rows} == {cold: False, full: True}
    with child_of(wire, cold) as child:
        assert child.run("true")[0] == 0
    path = f"/templates/{quote(cold, safe='')}"
    assert wire.call("DELETE", path).status == 204
    assert wire.call("POST", "/sandboxes", {"templateID": cold}).status == 404


def test_what_is_refused(wire: Wire, box: RawBox) -> None:
    for memory in ("x", "false", 0, 1, [], {}):
        got = snapshot(box, memory=memory)
        assert (got.status, got.json()["code"]) == (400, 400), memory
        assert "'memory'" in got.json()["message"]
    assert wire.call("GET", f"/snapshots?sandboxID={box.id}").json() == []
    assert pause(box, memory=False).status == 204
    assert snapshot(box, memory=False).status == 404


def test_kernels_start_anew(wire: Wire) -> None:
    with child_of(wire, "code-interpreter-v1") as source:
        text_of(source.execute("x = 1; open('/home/user/of-cell', 'w').write('kept')"))
        made = taken(source, memory=False)["snapshotID"]
        assert text_of(source.execute("x")) == "1"
    with child_of(wire, made) as child:
        events = child.execute("x")
        assert any(event["type"] == "error" and event["name"] == "NameError" for event in events), events
        assert text_of(child.execute("open('/home/user/of-cell').read()")) == "kept"


class TestSdk:
    @pytest_asyncio.fixture(params=["sync", "async"])
    async def cell(self, request: pytest.FixtureRequest) -> AsyncIterator[Either]:
        kind = interpreter.Sandbox if request.param == "sync" else interpreter.AsyncSandbox
        made = Either(await answer(kind.create(timeout=120)))
        yield made
        await made.kill()

    async def test_mode_filesystem(self, cell: Either) -> None:
        kind = interpreter.AsyncSandbox if cell.is_async else interpreter.Sandbox
        await cell.files.write("kept.txt", "kept")
        await cell.run_code("x = 41")
        await cell.commands.run("sleep 999", background=True, timeout=0)
        name = fresh("mode")
        for mode, wanted in (("filesystem", "nobody"), ("full", "somebody"), ("filesystem", "nobody")):
            made = await cell.create_snapshot(name=name, mode=mode)
            child = Either(await answer(kind.create(made.snapshot_id, timeout=60)))
            try:
                assert await child.files.read("kept.txt") == "kept"
                found = await child.commands.run("pgrep -fx 'sleep 999' >/dev/null && echo somebody || echo nobody")
                assert found.stdout.strip() == wanted, mode
                ran = await child.run_code("x")
                assert ran.text == "41" if mode == "full" else ran.error.name == "NameError"
            finally:
                await child.kill()
        assert (await cell.run_code("x + 1")).text == "42", "the source runs on"
        assert await answer(kind.delete_snapshot(made.snapshot_id)) is True
