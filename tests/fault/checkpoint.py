# SPDX-License-Identifier: Apache-2.0
"""Crashes at random moments of pauses, resumes, forks and snapshots.

Each round begins something with a box and kills the warden, criu or both with SIGKILL a random moment later. The
request may then succeed or fail, as it likes. What must hold: the box is there, running or asleep, with its memory,
files and processes as they were; and in the end nothing is left on the machine, and nothing under the data directory
that no box or snapshot owns.

"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

from support.server import Server
from support.state import leaked, look
from support.wire import Answer, Wire

BOXES = 2
# Threads that count, and a connection of the box with itself.
TALK = """
import socket, threading, time
ticks = [0, 0]
def tick(i):
    while True:
        ticks[i] += 1
        time.sleep(0.005)
for i in range(2):
    threading.Thread(target=tick, args=(i,), daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
far.settimeout(20)
def talk():
    before = list(ticks)
    near.sendall(b"ping")
    good = far.recv(4, socket.MSG_WAITALL) == b"ping"
    deadline = time.monotonic() + 20
    while any(now == was for now, was in zip(ticks, before)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return good + sum(now > was for now, was in zip(ticks, before))
"""
PATIENCE = 60
LONGEST = 1.5  # seconds until the kill


def descendants(pid: int) -> list[int]:
    found, rest = [], [pid]
    while rest:
        kids = []
        for task in Path(f"/proc/{rest.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                kids += [int(word) for word in task.read_text().split()]
        found += kids
        rest += kids
    return found


def is_criu(pid: int) -> bool:
    """Criu itself and its helpers. Processes it makes for a box have its name at first, too, but live in the box's
    namespace."""
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/comm").read_text().strip() == "criu":
            return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    return False


def shoot(pids: list[int]) -> int:
    hit = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            hit += 1
    return hit


class Subject:
    """A box with memory, files and a process of its own to be found again."""

    def __init__(self, server: Server, number: int) -> None:
        self.server, self.mark = server, f"mark-{number}-{random.randrange(1 << 30)}"
        sandbox = server.cell(timeout=3600)
        self.id = sandbox.sandbox_id
        sandbox.run_code(f"mark = {self.mark!r}; big = bytes(range(256)) * 4096; turns = 0")
        sandbox.run_code(TALK)
        sandbox.files.write("/home/user/mark", self.mark)
        sandbox.commands.run("setsid sleep 86400 > /dev/null 2>&1 < /dev/null & echo $! > /home/user/pid")
        self.turns = 0

    def ask(self, path: str, body: dict | None = None, wire: Wire | None = None) -> Answer:
        return (wire or self.server.wire).call("POST", f"/sandboxes/{self.id}/{path}", body or {})

    def state(self) -> str:
        got = self.server.wire.call("GET", f"/sandboxes/{self.id}")
        return got.json()["state"] if got.status == 200 else f"status {got.status}: {got.text[:200]}"

    def check(self) -> str | None:
        """What is wrong with it, or nothing."""
        found = self.state()
        if found not in ("running", "paused"):
            return f"it is gone: {found}"
        got = self.ask("connect", {"timeout": 3600})
        if got.status not in (200, 201):
            return f"{found}, and connect answers {got.status}: {got.text[:300]}"
        sandbox = self.server.connect(self.id)
        self.turns += 1
        run = sandbox.run_code("turns += 1; [mark, turns, len(big), big[:3]]", timeout=30)
        if run.error or run.text != f"['{self.mark}', {self.turns}, 1048576, b'\\x00\\x01\\x02']":
            return f"its memory is not what it was: {run.text} {run.error}"
        said = sandbox.run_code("talk()", timeout=30)
        if said.text != "3":
            return f"its threads or connections are stuck: {said.text} {said.error}"
        if sandbox.files.read("/home/user/mark") != self.mark:
            return "its file is not what it was"
        if sandbox.commands.run("kill -0 $(cat /home/user/pid) && echo lives").stdout != "lives\n":
            return "its process is gone"
        return None


class Round:
    def __init__(self, server: Server, subject: Subject, dice: random.Random) -> None:
        self.server, self.subject = server, subject
        self.what = dice.choice(["pause", "pause", "resume", "resume", "fork", "snapshot"])
        self.whom = os.environ.get("FAULT_WHOM") or dice.choice(["warden", "criu", "both", "warden"])
        self.when = dice.random() ** 2 * LONGEST
        self.later = dice.random() * LONGEST / 5  # from the moment criu is seen
        self.hit: Counter[str] = Counter()
        self.found = "lost"
        self.answer: Answer | None = None
        self.failure = ""

    def begin(self) -> None:
        body = {"fork": {"timeout": 600, "count": 2}, "resume": {"timeout": 3600}}
        path = {"snapshot": "snapshots"}.get(self.what, self.what)
        try:
            self.answer = self.subject.ask(path, body.get(self.what))
        except OSError as error:
            self.failure = repr(error)

    def targets(self, wardens: list[int]) -> list[int]:
        """Where criu is meant, it is waited for."""
        if self.whom == "warden":
            time.sleep(self.when)  # the moment that is tried
            return wardens
        deadline = time.monotonic() + LONGEST
        while not (criu := [pid for one in wardens for pid in descendants(one) if is_criu(pid)]):
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)  # between looks
        time.sleep(self.later)  # the moment that is tried
        criu = [pid for pid in criu if is_criu(pid)]
        return criu + (wardens if self.whom == "both" else [])

    def clear(self) -> None:
        """What the request made goes."""
        if not self.answer or self.answer.status != 201 or self.what == "resume":
            return
        told = self.answer.json()
        for fork in told if self.what == "fork" else []:
            if "sandbox" in fork:
                self.server.wire.call("DELETE", f"/sandboxes/{fork['sandbox']['sandboxID']}")
        if self.what == "snapshot":
            name = told["snapshotID"].replace("/", "%2F").replace(":", "%3A")
            made = self.server.wire.call("POST", "/sandboxes", {"templateID": told["snapshotID"], "timeout": 60})
            if made.status == 201:
                self.server.wire.call("DELETE", f"/sandboxes/{made.json()['sandboxID']}")
            deadline = time.monotonic() + 60
            while self.server.wire.call("DELETE", f"/templates/{name}").status == 400 and time.monotonic() < deadline:
                time.sleep(0.2)  # between looks
            if made.status != 201:
                raise AssertionError(f"no box from the snapshot: {made.status} {made.text[:300]}")

    def go(self) -> str | None:
        self.line = self.what
        if self.what == "resume":
            slept = self.subject.ask("pause")
            if slept.status != 204:
                return f"it can't be paused: {slept.status} {slept.text[:300]}"
        wardens = self.server.wardens()
        asking = threading.Thread(target=self.begin)
        asking.start()
        targets = self.targets(wardens)
        hit = 0
        for pid in targets:
            role = "warden" if pid in wardens else "criu"
            self.hit[role] += (one := shoot([pid]))
            hit += one
        asking.join(PATIENCE)
        told = self.failure or "no answer"
        if self.answer:
            told = f"{self.answer.status} {self.answer.text[:150] if self.answer.status >= 400 else ''}".strip()
        when = self.when if self.whom == "warden" else self.later
        self.line = f"{self.what:8} {self.whom:6} after {when * 1000:5.0f} ms, {hit} hit, answer {told}"
        if asking.is_alive():
            return "the request is never answered"
        self.clear()
        self.found = self.subject.state()
        return self.subject.check()


def owned_by_nobody(server: Server) -> set[str]:
    """Directories of images, layers and boxes, once all boxes and snapshots are gone."""
    found = set()
    for folder in ("checkpoints", "layers", "boxes"):
        place = server.data / folder
        found |= {f"{folder}/{entry.name}" for entry in place.glob("[!.]*")} if place.is_dir() else set()
    return {name for name in found if not name.startswith(("boxes/ready-", "boxes/zygote-"))}


class Report:
    """Tells every case as it ends, and all of them as JUnit XML in $TEST_REPORT where that is set."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.suite = xml.Element("testsuite", name="checkpoint faults")

    def add(self, name: str, told: str, wrong: str | None) -> None:
        case = xml.SubElement(self.suite, "testcase", classname="checkpoint", name=name)
        line = f"{name}: {told}" if told else name
        if wrong is None:
            print(f"ok    {line}", flush=True)
            return
        xml.SubElement(case, "failure", message=wrong[:160]).text = f"seed {self.seed}: {told}\n{wrong}"
        print(f"FAIL  {name} (seed {self.seed}): {told}\n      {wrong}", flush=True)

    def write(self) -> int:
        if path := os.environ.get("TEST_REPORT"):
            xml.ElementTree(self.suite).write(path, encoding="utf-8", xml_declaration=True)
        return sum(case.find("failure") is not None for case in self.suite)


def main() -> int:
    rounds = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else random.randrange(1 << 30)
    dice = random.Random(seed)
    random.seed(seed)
    server = Server()
    before = look(str(server.data))
    server.start()
    counts: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    lost = leaks = 0
    report = Report(seed)
    try:
        subjects = [Subject(server, number) for number in range(BOXES)]
        for number in range(rounds):
            turn = Round(server, dice.choice(subjects), dice)
            try:
                wrong = turn.go()
            except Exception as error:
                wrong = repr(error)[:500]
            counts[f"{turn.what} {turn.answer.status if turn.answer else 'none'}"] += 1
            kills.update(turn.hit)
            outcomes[turn.found.split()[0]] += 1
            report.add(f"round {number + 1}", turn.line, wrong)
            if wrong:
                lost += 1
                server.wire.call("DELETE", f"/sandboxes/{turn.subject.id}")
                subjects = [one for one in subjects if one is not turn.subject] + [Subject(server, rounds + number)]
        for subject in subjects:
            server.wire.call("DELETE", f"/sandboxes/{subject.id}")
        deadline = time.monotonic() + 60
        while (left := owned_by_nobody(server)) and time.monotonic() < deadline:
            time.sleep(0.2)  # between looks
        leaks += len(left)
        report.add("nothing left in the data directory", "", str(sorted(left)) if left else None)
    finally:
        log = server.log()
        server.close()
    left = leaked(before, str(server.data))
    leaks += len(left)
    report.add("nothing left on the machine", "", str(sorted(left)) if left else None)
    failed = report.write()
    if failed:
        print(log)
    print("answers:", ", ".join(f"{name} x{n}" for name, n in sorted(counts.items())))
    told = ", ".join(f"{name} x{n}" for name, n in sorted(kills.items()))
    after = ", ".join(f"{name} x{n}" for name, n in sorted(outcomes.items()))
    print(f"rounds {rounds}; killed: {told}; found: {after}; lost {lost}; leaked {leaks}")
    print(f"checkpoint faults (seed {seed}): {rounds + 2 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
