# SPDX-License-Identifier: Apache-2.0
"""New contexts in boxes that were not simply born: restored from disk, copied, or another daemon's.

Their second kernel is a fork of the template's loaded Python as in any other box, in the same jail as the first.
"""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import e2b_code_interpreter as interpreter
import pytest

from support.pythons import all_forks, pythons, warm_box
from support.recipes import fresh, order
from support.server import Server, own_server
from support.waiting import eventually
from support.wire import Wire

FACTS = """
import os
def facts():
    told = {}
    for line in open('/proc/self/status'):
        name, _, value = line.partition(':')
        if name in ('Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs',
                    'Seccomp', 'Seccomp_filters'):
            told[name] = value.split()
    for name in ('cgroup', 'limits', 'oom_score_adj', 'uid_map'):
        told[name] = open(f'/proc/self/{name}').read()
    told['namespaces'] = sorted(os.readlink(f'/proc/self/ns/{name}') for name in os.listdir('/proc/self/ns'))
    told['directory'] = os.getcwd()
    told['umask'] = os.umask(0o022)
    return told
facts()
"""


def facts(box: interpreter.Sandbox, context: Any = None) -> dict[str, Any]:
    done = box.run_code(FACTS, context=context)
    assert done.error is None, done.error
    return ast.literal_eval(done.text or "")


def slept(box: interpreter.Sandbox) -> None:
    box.pause()
    box.connect(timeout=300)


def check(box: interpreter.Sandbox) -> None:
    """What it had is there; more kernels are forks, and as walled in as the first."""
    assert box.run_code("x").text == "41"
    context = box.create_code_context()
    assert box.run_code("'x' in globals(), 6 * 7", context=context).text == "(False, 42)"
    found = pythons(box)
    assert len(found) >= 3, found  # the first, what forks the others, the second
    assert all_forks(box), found
    assert facts(box, context) == facts(box)
    drawn = {box.run_code("import random; random.random()", context=each).text for each in (None, context)}
    assert len(drawn) == 2


def check_asleep(box: interpreter.Sandbox) -> None:
    """The contexts that came in later sleep and wake like the first."""
    context = box.create_code_context()
    box.run_code("y = 5", context=context)
    slept(box)
    assert box.run_code("x").text == "41"
    assert box.run_code("y", context=context).text == "5"


@pytest.fixture
def source() -> Iterator[interpreter.Sandbox]:
    box = warm_box()
    box.run_code("x = 41")
    yield box
    box.kill()


def test_a_context_after_a_resume(source: interpreter.Sandbox) -> None:
    slept(source)
    check(source)
    check_asleep(source)


def test_a_context_in_a_fork_of_a_box(source: interpreter.Sandbox) -> None:
    for made in source.fork(count=2, timeout=300):
        assert isinstance(made, interpreter.Sandbox), made
        try:
            check(made)
            check_asleep(made)
        finally:
            made.kill()
    check(source)


def test_a_context_in_a_box_from_a_snapshot(source: interpreter.Sandbox) -> None:
    taken = source.create_snapshot()
    made = interpreter.Sandbox.create(taken.snapshot_id, timeout=300)
    try:
        check(made)
        check_asleep(made)
    finally:
        made.kill()
        interpreter.Sandbox.delete_snapshot(taken.snapshot_id)


def test_a_context_in_a_box_of_a_ready_template(wire: Wire, source: interpreter.Sandbox) -> None:
    """It begins with the memory of a box that its build started."""
    name = fresh("running")
    order(wire, name, fromTemplate="code-interpreter-v1", startCmd="sleep 1000000", readyCmd="true").ready()
    made = interpreter.Sandbox.create(name, timeout=300)
    try:
        assert all_forks(made)
        made.run_code("x = 41")
        check(made)
    finally:
        made.kill()


def test_a_copy_whose_libraries_were_changed_loads_its_own(source: interpreter.Sandbox) -> None:
    """Its Python would not load the same, so the template's is not for it."""
    source.commands.run(
        "echo 'MARK = 7' >> $(python3 -c 'import numpy.version as v; print(v.__file__)')", user="root"
    )
    (made,) = source.fork(timeout=300)
    assert isinstance(made, interpreter.Sandbox), made
    try:
        context = made.create_code_context()
        got = made.run_code("import numpy; numpy.version.MARK", context=context)
        assert got.text == "7", got.error
    finally:
        made.kill()


# ---- another daemon's boxes ----


@pytest.fixture
def server() -> Iterator[Server]:
    with own_server() as made:
        yield made


def warden_dies(server: Server) -> None:
    wardens = server.wardens()
    for pid in wardens:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: server.wardens() and not set(server.wardens()) & set(wardens), 60)


def daemon_dies(server: Server) -> None:
    server.signal(signal.SIGKILL)
    server.start()


@pytest.mark.parametrize("death", [warden_dies, daemon_dies])
def test_a_context_in_a_box_that_an_earlier_daemon_made(server: Server, death: Callable[[Server], None]) -> None:
    box = warm_box(lambda: server.cell(timeout=300))
    box.run_code("x = 41")
    death(server)
    eventually(lambda: server.wire.call("GET", "/health").status == 200, 60)
    box = server.connect(box.sandbox_id)
    check(box)
    slept(box)
    check(box)
