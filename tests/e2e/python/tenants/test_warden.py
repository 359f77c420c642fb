# SPDX-License-Identifier: Apache-2.0
"""What a box or its agent can make the warden wait for: another team's creates, pauses and resumes go on meanwhile.

The limits below are far above what any of this takes on a busy machine and far below what it took when one tenant
could hold the warden (10 to 20 seconds).
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.server import binary, own_server
from support.tenants import Tenants, compiled, put_program, runtime_with_agent, two_teams
from support.wire import Answer, RawBox, Wire

INTERPRETER = "code-interpreter-v1"
SOON = 9.0


def seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def all_at_once(acts: list[Callable[[], Answer]]) -> tuple[list[Answer | None], list[threading.Thread]]:
    answers: list[Answer | None] = [None] * len(acts)

    def one(i: int) -> None:
        answers[i] = acts[i]()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(acts))]
    for thread in threads:
        thread.start()
    return answers, threads


def kill_all(wire: Wire) -> None:
    for row in wire.call("GET", "/v2/sandboxes?state=running,paused").json():
        wire.call("DELETE", f"/sandboxes/{row['sandboxID']}")


def launch_and_sleep(wire: Wire, template: str = "base") -> float:
    """A box of one's own: made, paused and woken; the longest of the three."""
    began = time.monotonic()
    box = wire.create(template)
    worst = time.monotonic() - began
    try:
        worst = max(worst, seconds(lambda: wire.call("POST", f"/sandboxes/{box.id}/pause")))
        worst = max(worst, seconds(lambda: wire.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})))
        assert box.run("echo here")[1] == "here\n"
    finally:
        box.kill()
    return worst


# ---- descriptors ----


SO_PASSRIGHTS = 83  # Linux 6.16: a socket refuses descriptors to their sender


def kernel_refuses_descriptors() -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError:
            return False
    return True


def linger(tenants: Tenants, in_time: bool = False) -> str:
    """Root of a box sends the warden sockets whose close blocks; another team is served meanwhile. What the program
    said. In time: the warden, which hangs up on strangers, is held until everything was sent."""
    hostile = tenants.attacker.create(INTERPRETER, timeout=60)
    try:
        program = put_program(hostile, "linger")
        if in_time:
            hostile.run(f"(sleep 1; {program} 15) </dev/null >/dev/null 2>&1 &", user="root")
            (warden,) = tenants.server.wardens()
            os.kill(warden, signal.SIGSTOP)
            time.sleep(2)  # the program waits for one second and then sends at once; nothing of it is seen from here
            os.kill(warden, signal.SIGCONT)
        else:
            assert seconds(lambda: hostile.run(f"{program} 15", user="root")) < 5
        worst = max(launch_and_sleep(tenants.victim) for _ in range(2))
        said = hostile.run("cat /tmp/linger.out", user="root")[1]
        assert "sent" in said
        assert worst < SOON, (worst, said)
        return said
    finally:
        hostile.kill()


def test_a_lingering_socket_does_not_stop_the_warden(tenants: Tenants) -> None:
    said = linger(tenants)
    if kernel_refuses_descriptors():
        assert said.startswith("0 sent"), said


@pytest.fixture
def older_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Tenants]:
    """A server on a kernel that does not know SO_PASSRIGHTS, which is what a filter makes of this one."""
    launcher = tmp_path / "older_kernel"
    launcher.write_bytes(compiled("older_kernel"))
    script = tmp_path / "cloche"
    script.write_text(f'#!/bin/sh\nexec {launcher} {Path(binary()).resolve()} "$@"\n')
    for program in (launcher, script):
        program.chmod(0o755)
    monkeypatch.setenv("CLOCHE_BIN", str(script))
    with own_server() as made:
        yield two_teams(made)


def test_where_the_kernel_takes_lingering_sockets_they_are_closed_aside(older_kernel: Tenants) -> None:
    said = linger(older_kernel, in_time=True)
    assert not said.startswith("0 sent"), said


def test_an_ordinary_second_context_still_gets_its_python(tenants: Tenants) -> None:
    """The same road, used as it is meant: contexts beside the first come from the zygote, and survive a sleep."""
    box = tenants.victim.create(INTERPRETER, timeout=120)
    try:
        made = box.port(49999, "POST", "/contexts", {"language": "python"}, headers={"X-Access-Token": box.token})
        assert made.status in (200, 201), made.body
        context = made.json()["id"]
        box.execute("x = 41", context_id=context)
        assert tenants.victim.call("POST", f"/sandboxes/{box.id}/pause").status == 204
        assert tenants.victim.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status in (200, 201)
        events = box.execute("print(x + 1)", context_id=context)
        assert any(event.get("text") == "42\n" for event in events), events
    finally:
        box.kill()


# ---- mute agents ----


@pytest.fixture(scope="module")
def shimmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """A server whose agent is mute in boxes that have a file /etc/mute; no box is made ahead, so each one needs a
    worker."""
    runtime = runtime_with_agent(tmp_path_factory.mktemp("runtime") / "it", "shim")
    with own_server("--runtime", runtime, "--pool", "0", "--checkpoint", "frozen") as made:
        yield two_teams(made)


def test_mute_agents_keep_nobody_else_waiting(shimmed: Tenants) -> None:
    boxes: list[RawBox] = []
    try:
        for _ in range(12):
            box = shimmed.attacker.create(timeout=120)
            boxes.append(box)
            assert box.run("touch /etc/mute", user="root")[0] == 0
            paused = shimmed.attacker.call("POST", f"/sandboxes/{box.id}/pause", {"memory": False})
            assert paused.status == 204, paused.body
        answers, threads = all_at_once(
            [
                lambda box=box: shimmed.attacker.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})
                for box in boxes
            ]
        )
        time.sleep(0.5)  # all twelve requests are with the warden, which shows them nowhere
        worst = max(launch_and_sleep(shimmed.victim) for _ in range(2))
        still = sum(thread.is_alive() for thread in threads)
        for thread in threads:
            thread.join()
        assert worst < SOON, worst
        assert still, "the agents were not mute"
        for answer in answers:
            assert answer is not None
            assert answer.status >= 400
            assert "agent" in answer.text, answer.text
    finally:
        kill_all(shimmed.attacker)


def test_a_mute_agent_is_found_out_and_its_box_goes_on_elsewhere(shimmed: Tenants) -> None:
    """Its files stay: without the trap it wakes again."""
    box = shimmed.attacker.create(timeout=120)
    try:
        assert box.run("touch /etc/mute; echo kept > /root/kept", user="root")[0] == 0
        assert shimmed.attacker.call("POST", f"/sandboxes/{box.id}/pause", {"memory": False}).status == 204
        took = seconds(lambda: shimmed.attacker.call("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}))
        assert took < 18, took
        detail = shimmed.attacker.call("GET", f"/sandboxes/{box.id}")
        assert detail.json()["state"] == "paused"
    finally:
        box.kill()


def test_restored_mute_agents_hold_no_place_in_the_queue(tenants: Tenants) -> None:
    """Copies of a box whose agent will hang on a pipe of the box's own when it is told who it is: others' dumps and
    restores go on."""
    source = tenants.attacker.create(timeout=120)
    try:
        assert source.run("rm -f /.e2b && mkfifo /.e2b", user="root")[0] == 0
        answers, threads = all_at_once(
            [
                lambda: tenants.attacker.call(
                    "POST", f"/sandboxes/{source.id}/fork", {"count": 8, "timeout": 60}, timeout=120
                )
            ]
        )
        time.sleep(1.5)  # the copies are restored and their agents hang, which shows nowhere
        worst = launch_and_sleep(tenants.victim)
        still = threads[0].is_alive()
        threads[0].join()
        assert worst < SOON, worst
        assert still, "the agents were not mute"
        assert answers[0] is not None
        assert "agent" in answers[0].text, answers[0].text
    finally:
        kill_all(tenants.attacker)


# ---- queues ----


@pytest.fixture
def one_job() -> Iterator[Tenants]:
    """A server on which a team has one dump or restore at a time."""
    with own_server("--checkpoint-jobs", "1") as made:
        yield two_teams(made)


def test_a_long_queue_of_dumps_is_its_own_teams(one_job: Tenants) -> None:
    crowd = [one_job.attacker.create(timeout=120) for _ in range(6)]
    own = one_job.victim.create(timeout=120)
    try:
        for box in crowd:  # no page of it is like another
            assert box.run("head -c 4194304 /dev/urandom > /dev/shm/bytes", user="root")[0] == 0
        began = time.monotonic()
        answers, threads = all_at_once(
            [lambda box=box: one_job.attacker.call("POST", f"/sandboxes/{box.id}/pause", timeout=120) for box in crowd]
        )
        time.sleep(0.2)  # all six requests are in the queue, which shows nowhere
        took = seconds(lambda: one_job.victim.call("POST", f"/sandboxes/{own.id}/pause", timeout=120))
        mine = time.monotonic() - began
        for thread in threads:
            thread.join()
        theirs = time.monotonic() - began
        assert {answer.status for answer in answers if answer} == {204}
        assert mine < theirs / 2, (took, mine, theirs)
    finally:
        kill_all(one_job.attacker)
        own.kill()


def test_changes_of_network_lists_have_a_rate(tenants: Tenants) -> None:
    """Each is a call to nft that everyone's creates wait for."""
    box = tenants.attacker.create(timeout=60)
    own = tenants.victim.create(timeout=60)
    try:
        path, body = f"/sandboxes/{box.id}/network", {"denyOut": ["198.51.100.0/24"]}
        got = [tenants.attacker.call("PUT", path, body) for _ in range(60)]
        assert got[0].status in (200, 204), got[0].body
        late = [answer for answer in got if answer.status == 429]
        assert late
        assert late[0].headers["Retry-After"]
        assert tenants.victim.call("PUT", f"/sandboxes/{own.id}/network", body).status in (200, 204)
    finally:
        box.kill()
        own.kill()
