# SPDX-License-Identifier: Apache-2.0
"""Two machines share a PostgreSQL: they see each other, and live through its absence, a cut link, each other's end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines import LEASE_S, Machine, wait_for


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Machine, Machine]]:
    a, b = Machine(1, "node-a"), Machine(2, "node-b")
    # One without TLS, the other with the certificate checked.
    b.settings["store"] = f"postgres://cloche@10.99.0.1/cloche?sslmode=verify-full&sslrootcert={os.environ['STORE_CA']}"
    try:
        for machine in (a, b):
            machine.join()
        for machine in (a, b):
            machine.start()
        yield a, b
    finally:
        for machine in (a, b):
            machine.leave()


def refused(answer: tuple[int, str]) -> bool:
    return answer[0] == 503 and "retry-after:" in answer[1].lower()


def test_either_machine_lists_both(pair: tuple[Machine, Machine]) -> None:
    a, b = pair
    for asked in pair:
        got = asked.nodes()
        assert sorted(got) == ["node-a", "node-b"]
        assert [got[n]["status"] for n in sorted(got)] == ["ready", "ready"]
        assert got["node-b"]["labels"] == {"zone": "z2"}
        assert got["node-b"]["address"] == "10.99.0.12:3000"
        assert "base" in got["node-b"]["templates"]
        assert got["node-b"]["metrics"]["cpuCount"] >= 1
        assert got["node-b"]["metrics"]["memoryTotalBytes"] > 0
        assert 0 < got["node-b"]["leaseMs"] <= LEASE_S * 1000
    assert a.nodes()["node-a"]["serviceInstanceID"] != a.nodes()["node-b"]["serviceInstanceID"]
    assert a.call("GET", "/nodes/node-b", admin=True).json()["id"] == "node-b"
    assert a.call("GET", "/nodes/local", admin=True).json()["id"] == "node-a"
    assert a.call("GET", "/nodes/ghost", admin=True).status == 404
    assert a.call("GET", "/nodes").status == 401
    listed = subprocess.run(
        [os.environ["CLOCHE_BIN"], "node", "list", "--data", str(a.folder / "data")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [["node-a", "ready"], ["node-b", "ready"]]


def test_a_machine_is_drained_through_the_other(pair: tuple[Machine, Machine]) -> None:
    a, b = pair
    assert a.call("POST", "/nodes/node-b", {"status": "draining"}, admin=True).status == 204
    assert a.call("POST", "/nodes/ghost", {"status": "draining"}, admin=True).status == 404
    wait_for(lambda: a.node("node-b")["status"] == "draining")
    assert refused((b.create().status, str(b.create().headers).replace("'", "").lower()))
    assert a.create().status == 201
    assert a.call("POST", "/nodes/node-b", {"status": "ready"}, admin=True).status == 204
    wait_for(lambda: a.node("node-b")["status"] == "ready")
    assert b.create().status == 201


def test_the_store_process_has_no_rights(pair: tuple[Machine, Machine]) -> None:
    (pid,) = pair[0].processes("store")
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert set(status["Uid"].split()) == {"64997"}
    assert status["CapEff"].strip() == "0000000000000000"
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    assert sorted(os.listdir(f"/proc/{pid}/root")) == ["etc"]
    assert "10.99.0.1" not in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_name_that_is_taken_is_refused(pair: tuple[Machine, Machine]) -> None:
    """Told through a socket, which the store process has in its root."""
    third = Machine(3, "node-a", settings={"store": f"postgres://cloche@/cloche?host={os.environ['STORE_SOCKET']}"})
    try:
        third.join()
        third.start(ready=False)
        wait_for(lambda: "the node name 'node-a' is another machine's (at 10.99.0.11:3000" in third.log())
        assert third.create().status == 503
        assert pair[0].node("node-a")["address"] == "10.99.0.11:3000"
        assert pair[0].create().status == 201
        (pid,) = third.processes("store")
        assert sorted(os.listdir(f"/proc/{pid}/root")) == ["etc", "socket"]
    finally:
        third.leave()


def test_a_certificate_of_another_authority_is_refused(pair: tuple[Machine, Machine]) -> None:
    third = Machine(3, "node-c", settings={"store": "postgres://cloche@10.99.0.1/cloche"})
    try:
        third.join()
        third.start(ready=False)
        wait_for(lambda: "the store is away" in third.log() and "certificate verify failed" in third.log())
        assert third.create().status == 503
        assert sorted(pair[0].nodes()) == ["node-a", "node-b"]
    finally:
        third.leave()


def test_a_machine_without_the_store_keeps_its_boxes_and_starts_none(pair: tuple[Machine, Machine]) -> None:
    a, b = pair
    made = b.create()
    assert made.status == 201
    box, epoch = made.json()["sandboxID"], a.node("node-b")["epoch"]
    b.cut(True)
    try:
        wait_for(lambda: a.node("node-b")["status"] == "unhealthy")
        assert a.node("node-a")["status"] == "ready"
        wait_for(lambda: refused(b.from_inside("POST", "/sandboxes", {"templateID": "base"})))
        assert refused(b.from_inside("GET", "/nodes", admin=True))
        assert b.from_inside("GET", "/nodes/local", admin=True)[0] == 200
        assert b.from_inside("GET", f"/sandboxes/{box}")[0] == 200
        assert b.from_inside("POST", f"/sandboxes/{box}/timeout", {"timeout": 300})[0] == 204
    finally:
        b.cut(False)
    wait_for(lambda: a.node("node-b")["status"] == "ready", 40)
    assert a.node("node-b")["epoch"] == epoch
    assert b.create().status == 201
    assert b.call("DELETE", f"/sandboxes/{box}").status == 204


def test_a_killed_warden_takes_its_name_again_under_a_new_epoch(pair: tuple[Machine, Machine]) -> None:
    a, b = pair
    box, epoch = b.create().json()["sandboxID"], a.node("node-b")["epoch"]
    (warden,) = b.processes("warden")
    os.kill(warden, signal.SIGKILL)
    wait_for(lambda: a.node("node-b")["epoch"] > epoch and a.node("node-b")["status"] == "ready")
    assert b.call("GET", f"/sandboxes/{box}").status == 200
    (store,) = b.processes("store")
    os.kill(store, signal.SIGKILL)
    wait_for(lambda: b.processes("store") not in ([], [store]))
    wait_for(lambda: b.create().status == 201)


def test_a_machine_that_stops_stands_by_at_once(pair: tuple[Machine, Machine]) -> None:
    a, b = pair
    epoch = a.node("node-b")["epoch"]
    b.stop()
    assert a.node("node-b")["status"] == "standby"
    b.start()
    assert a.node("node-b")["epoch"] > epoch


def break_something(machine: Machine, kind: int) -> None:
    if kind in (0, 1):
        (pid,) = machine.processes("warden" if kind == 0 else "store")
        os.kill(pid, signal.SIGKILL)
    elif kind == 2:
        machine.cut(True)
        time.sleep(LEASE_S + 1)  # the lease runs out
        machine.cut(False)
    elif kind == 3:  # the supervisor; boxes go on, the next one adopts them
        machine.stop(signal.SIGKILL)
        machine.start(ready=False)


def look(asked: Machine, box: str, epochs: dict[str, int]) -> dict[str, int]:
    """Both machines are there again, no epoch went back, and the box lives."""
    wait_for(lambda: [n["status"] for n in asked.nodes().values()] == ["ready", "ready"], 40)
    now = {name: node["epoch"] for name, node in asked.nodes().items()}
    assert all(now[name] >= epochs[name] for name in epochs)
    wait_for(lambda: asked.call("GET", f"/sandboxes/{box}").status == 200)
    wait_for(lambda: asked.create().status == 201)
    return now


def test_faults_lose_no_box_and_no_name(pair: tuple[Machine, Machine]) -> None:
    """CLUSTER_ROUNDS of them, each of another kind than the last; a soak has many."""
    made = [m.call("POST", "/sandboxes", {"templateID": "base", "timeout": 3600}).json() for m in pair]
    boxes = [box["sandboxID"] for box in made]
    epochs = {name: node["epoch"] for name, node in pair[0].nodes().items()}
    for i in range(int(os.environ.get("CLUSTER_ROUNDS", "2"))):
        break_something(pair[(i + i // 4) % 2], (i + 3) % 4)
        for asked, box in zip(pair, boxes, strict=True):
            epochs = look(asked, box, epochs)
    for machine, box in zip(pair, boxes, strict=True):
        assert machine.call("DELETE", f"/sandboxes/{box}").status == 204
