# SPDX-License-Identifier: Apache-2.0
"""The nursery: forks that are alike in what they know and differ in what must differ."""

import array
import json
import os
import signal
import socket

from conftest import Client, exit_of, fork, spawn


def test_the_nursery_introduces_itself(nursery: Client) -> None:
    assert nursery.ready == {"ev": "ready", "pid": nursery.process.pid, "nursery": True}


def test_it_has_one_thread(nursery: Client) -> None:
    assert len(os.listdir(f"/proc/{nursery.process.pid}/task")) == 1


def test_a_fork_starts_at_one_with_nothing_in_it(kernel: Client) -> None:
    outcome = kernel.run("sorted(n for n in globals() if not n.startswith('_'))")
    assert outcome.count == 1
    assert outcome.main["application/json"] == ["In", "Out", "exit", "get_ipython", "open", "quit"]
    assert kernel.run("In, Out").value.startswith("(['', \"sorted(")
    assert kernel.run("import sys; hasattr(sys, 'last_value')").value == "False"
    assert kernel.run("import matplotlib.pyplot as plt; plt.get_fignums()").value == "[]"


def test_heavy_libraries_are_there(kernel: Client) -> None:
    assert (
        kernel.run("import sys; [m in sys.modules for m in ('numpy', 'pandas', 'matplotlib.pyplot')]").value
        == "[True, True, True]"
    )


def test_the_nursery_sets_no_thread_variables(kernel: Client) -> None:
    assert kernel.run("import os; [k for k in os.environ if k.endswith('_NUM_THREADS')]").value == "[]"


def test_large_operations_start_their_threads_in_the_fork(kernel: Client) -> None:
    count = "import os, numpy as np; a = np.ones((700, 700)); before = len(os.listdir('/proc/self/task'))\n"
    outcome = kernel.run(
        count
        + (
            "b = a @ a\n(before, len(os.listdir('/proc/self/task')), float(b[0, 0]), "
            "os.process_cpu_count() if hasattr(os, 'process_cpu_count') else os.cpu_count())"
        )
    )
    before, after, product, cores = outcome.value.strip("()").split(", ")
    assert (before, product) == ("1", "700.0")
    assert int(after) <= max(2, int(cores))


def test_each_fork_has_a_session_of_its_own(kernel: Client) -> None:
    pid = kernel.ready["pid"]
    assert kernel.run("import os; (os.getpid(), os.getsid(0), os.getpgid(0))").value == f"({pid}, {pid}, {pid})"


def test_forks_draw_different_numbers(nursery: Client) -> None:
    code = """\
import random, numpy, uuid, tempfile, secrets, multiprocessing
[random.random(), float(numpy.random.rand()), float(numpy.random.default_rng().random()), str(uuid.uuid4()),
str(uuid.uuid1()),
 next(tempfile._get_candidate_names()), secrets.token_hex(), multiprocessing.current_process().authkey.hex()]"""
    draws = []
    for _ in range(3):
        kernel = fork(nursery)
        draws.append(kernel.run(code).main["application/json"])
        kernel.close()
    for column in zip(*draws, strict=True):
        assert len(set(column)) == 3, column


def test_forks_have_loops_of_their_own(nursery: Client) -> None:
    first, second = fork(nursery), fork(nursery)
    first.run("import asyncio; t = asyncio.create_task(asyncio.sleep(60))")
    assert second.run("import asyncio; len(asyncio.all_tasks())").value == "0"
    assert second.run("await asyncio.sleep(0.01, 'ok')").value == "'ok'"
    first.close()
    second.close()


def test_forks_hold_only_their_own_descriptors(kernel: Client) -> None:
    pid = kernel.ready["pid"]
    sockets = [fd for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")]
    assert len(sockets) == 3  # the protocol, and the loop's pair to wake itself


def test_an_exit_is_reported_with_its_status(nursery: Client) -> None:
    kernel = fork(nursery)
    os.kill(kernel.ready["pid"], signal.SIGTERM)
    assert exit_of(nursery, kernel) == signal.SIGTERM
    kernel.close()


def test_a_fork_without_descriptors_is_refused(nursery: Client) -> None:
    nursery.send({"op": "fork", "id": "x"})
    answer = nursery.next()
    while answer["ev"] != "forked":
        answer = nursery.next()
    assert (answer["id"], answer["pid"]) == ("x", -1)
    assert answer["reason"]


def test_requests_sent_together_are_all_served(nursery: Client) -> None:
    ends = []
    for number in (901, 902):
        ours, theirs = socket.socketpair()
        rights = array.array("i", [theirs.fileno(), 1, 2])
        line = json.dumps({"op": "fork", "id": number}).encode() + b"\n"
        nursery.pipes.sock.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        theirs.close()
        ends.append(ours)
    for ours in ends:
        ours.settimeout(10)
        assert b'"ready"' in ours.recv(4096)
        ours.close()


def test_children_outlive_the_nursery(home) -> None:
    nursery = spawn(["--nursery"], home)
    kernel = fork(nursery)
    kernel.run("x = 7")
    nursery.pipes.sock.shutdown(2)
    assert nursery.process.wait(5) == 0
    assert kernel.run("x").value == "7"
    kernel.close()
    nursery.close()
