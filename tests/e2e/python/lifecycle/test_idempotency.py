# SPDX-License-Identifier: Apache-2.0
"""Idempotency-Key on a create: one sandbox per key, whatever is repeated, at the same time, or killed in between."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import e2b
import pytest

from support.server import Server, own_server
from support.tenants import cloche
from support.waiting import eventually
from support.wire import Answer, RawBox, Wire

PATH = "/v2/sandboxes"
WAIT = 4  # idempotency_wait_seconds of the server
MOST = 60  # team_idempotency_keys_max
PLAIN = {"templateID": "base", "timeout": 120}


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    flags = ("--idempotency-wait-seconds", str(WAIT), "--team-idempotency-keys-max", str(MOST), "--pool", "1")
    with own_server(*flags) as made:
        yield made


@pytest.fixture
def named(own: Server, unique: str) -> Iterator[str]:
    """A fresh key; whatever was made with it is ended."""
    yield unique
    for box in living(own.wire):
        own.wire.call("DELETE", f"/sandboxes/{box}")


def another_team(own: Server, name: str, *limits: str) -> Wire:
    team = cloche(own, "team", "create", name, *limits)
    return Wire(own.url, cloche(own, "key", "create", "for a test", "--team", team))


def ask(wire: Wire, key: str | None, body: object = PLAIN, path: str = PATH, **more: str) -> Answer:
    sent = more | ({"Idempotency-Key": key} if key is not None else {})
    return wire.call("POST", path, body, sent)


def living(wire: Wire) -> set[str]:
    return {row["sandboxID"] for row in wire.call("GET", "/v2/sandboxes").json()}


def refused(got: Answer, status: int, code: str) -> bool:
    assert (got.status, got.json()["code"]) == (status, status), got.body
    assert got.json()["error_code"] == code
    return True


def test_a_repeat_gets_the_first_answer(own: Server, named: str) -> None:
    first = ask(own.wire, named, PLAIN | {"metadata": {"a": "1", "b": "2"}})
    assert first.status == 201, first.body
    shuffled = '{ "metadata":{"b":"2","a":"1"}, "unknown": 5, "timeout":120 ,"templateID":"base"}'
    again = ask(own.wire, named, shuffled, **{"Content-Type": "application/json"})
    assert (again.status, again.json()) == (201, first.json())
    assert living(own.wire) == {first.json()["sandboxID"]}
    box = RawBox(own.wire, again.json())
    assert box.run("echo here")[1].strip() == "here"  # its tokens open it
    box.kill()
    after = ask(own.wire, named, PLAIN | {"metadata": {"a": "1", "b": "2"}})
    assert (after.status, after.body) == (201, first.body)
    assert living(own.wire) == set()


def test_a_private_box_gets_its_traffic_token_again(own: Server, named: str) -> None:
    body = PLAIN | {"network": {"allowPublicTraffic": False}}
    first, again = ask(own.wire, named, body), ask(own.wire, named, body)
    assert first.json()["trafficAccessToken"]
    assert first.json() == again.json()


def test_no_token_is_in_the_store(own: Server, named: str) -> None:
    made = ask(own.wire, named).json()
    with sqlite3.connect(f"file:{own.data}/cloche.db?mode=ro", uri=True) as db:
        row = db.execute("SELECT * FROM idempotency WHERE key=?", (named,)).fetchone()
    assert made["sandboxID"] in row
    assert all(made["envdAccessToken"] not in str(value) for value in row)


def test_another_request_with_the_key_is_refused(own: Server, named: str) -> None:
    first = ask(own.wire, named)
    for other in ({"timeout": 121}, {"metadata": {"x": "y"}}, {"templateID": "code-interpreter-v1"}):
        got = ask(own.wire, named, PLAIN | other)
        assert refused(got, 409, "idempotency_request_mismatch")
        assert got.json()["message"] == "Idempotency-Key was already used with a different request"
        assert got.headers["Should-Retry"] is None
    assert living(own.wire) == {first.json()["sandboxID"]}


def test_a_bad_key_is_refused_and_elsewhere_ignored(own: Server, named: str) -> None:
    for bad in ("", "Upper", "under_score", "a b", "a" * 256, "a,b"):
        got = ask(own.wire, bad)
        assert got.status == 400, (bad, got.body)
        assert "Idempotency-Key" in got.json()["message"]
    twice = (
        f"POST {PATH} HTTP/1.1\r\nHost: x\r\nX-API-KEY: {own.key}\r\nIdempotency-Key: a\r\n"
        f"Idempotency-Key: a\r\nContent-Length: 21\r\nConnection: close\r\n\r\n" + '{"templateID":"base"}'
    )
    assert own.wire.exchange(twice.encode()).startswith(b"HTTP/1.1 400")
    assert living(own.wire) == set()
    one, two = (ask(own.wire, "Not a key", path="/sandboxes") for _ in range(2))
    assert (one.status, two.status) == (201, 201)
    assert one.json()["sandboxID"] != two.json()["sandboxID"]


def test_errors_are_answers_too_but_not_those_that_ask_for_a_repeat(own: Server, named: str) -> None:
    missing = {"templateID": f"none-{named}"}
    first, again = ask(own.wire, named, missing), ask(own.wire, named, missing)
    assert (first.status, first.body) == (404, again.body)
    small = another_team(own, f"small-{named}", "--boxes", "1")
    held = small.create()
    limited = ask(small, named)
    assert limited.status == 429, limited.body
    held.kill()
    assert ask(small, named).status == 201
    for box in living(small):
        small.call("DELETE", f"/sandboxes/{box}")


def test_a_key_is_a_teams_own(own: Server, named: str) -> None:
    other = another_team(own, f"other-{named}")
    mine, theirs = ask(own.wire, named), ask(other, named, PLAIN | {"timeout": 60})
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json()["sandboxID"] != theirs.json()["sandboxID"]
    assert ask(other, named, PLAIN | {"timeout": 60}).json() == theirs.json()
    other.call("DELETE", f"/sandboxes/{theirs.json()['sandboxID']}")


def test_twenty_at_once_are_one(own: Server, named: str) -> None:
    with ThreadPoolExecutor(20) as pool:
        got = list(pool.map(lambda _: ask(own.wire, named), range(20)))
    assert {answer.status for answer in got} == {201}, [answer.body for answer in got]
    assert len({answer.body for answer in got}) == 1
    assert living(own.wire) == {got[0].json()["sandboxID"]}


def test_the_stock_client_repeats_a_create_and_gets_the_same_box(own: Server, named: str) -> None:
    access = {"api_key": own.key, "api_url": own.url, "sandbox_url": own.url}
    boxes = [e2b.Sandbox.create("base", timeout=60, idempotency_key=named, **access) for _ in range(2)]
    assert boxes[0].sandbox_id == boxes[1].sandbox_id
    assert boxes[1].commands.run("echo same").stdout == "same\n"
    with pytest.raises(e2b.SandboxException, match="409: Idempotency-Key was already used with a different request"):
        e2b.Sandbox.create("base", timeout=61, idempotency_key=named, **access)
    with ThreadPoolExecutor(5) as pool:
        make = lambda _: e2b.Sandbox.create("base", timeout=60, idempotency_key=f"{named}-5", **access)  # noqa: E731
        assert len({box.sandbox_id for box in pool.map(make, range(5))}) == 1


def test_answers_survive_each_kind_of_restart(own: Server, named: str) -> None:
    first = ask(own.wire, named)
    (warden,) = own.wardens()
    os.kill(warden, signal.SIGKILL)
    eventually(lambda: own.wardens() not in ([], [warden]))
    assert ask(own.wire, named).body == first.body
    for gate in gates_of(own):
        os.kill(gate, signal.SIGKILL)
    assert eventually(lambda: ask(own.wire, named).body == first.body)
    address = own.url.removeprefix("http://")  # the same port: the answer's domain names the one that is asked
    own.signal(signal.SIGTERM)
    own.start(*own.flags, "--listen", address)
    assert ask(own.wire, named).body == first.body
    assert refused(ask(own.wire, named, PLAIN | {"timeout": 9}), 409, "idempotency_request_mismatch")
    assert living(own.wire) == {first.json()["sandboxID"]}


def gates_of(own: Server) -> list[int]:
    """Without the boxes of a killed warden, which become the supervisor's children."""
    return [pid for pid in own.gates() if Path(f"/proc/{pid}/comm").read_text().startswith("cloche-gate")]


def reserved(own: Server, key: str) -> bool | None:
    """Whether the key waits for its answer; None when it is not there."""
    with sqlite3.connect(f"file:{own.data}/cloche.db?mode=ro", uri=True) as db:
        row = db.execute("SELECT answered FROM idempotency WHERE key=?", (key,)).fetchone()
    return None if row is None else not row[0]


def shot_between(own: Server, key: str, *, with_gates: bool) -> tuple[str, list[Answer]]:
    """Begins creates until one is killed after its key was reserved and before it was answered."""
    for attempt in range(40):
        name, answers = f"{key}-{attempt}", []

        def create(name: str = name, answers: list[Answer] = answers) -> None:
            with contextlib.suppress(OSError):  # its gate was killed
                answers.append(ask(own.wire, name, {"templateID": "base", "timeout": 100}))

        (warden,) = own.wardens()
        gates = gates_of(own)
        thread = threading.Thread(target=create)
        thread.start()
        while reserved(own, name) is None and not answers:
            time.sleep(0.0005)  # the shot must come before the answer
        for pid in [*gates, warden] if with_gates else [warden]:
            os.kill(pid, signal.SIGKILL)
        hit = reserved(own, name)
        eventually(lambda old=warden: own.wardens() not in ([], [old]))
        if with_gates:
            eventually(lambda old=gates: len(gates_of(own)) == len(old))
        if hit:
            thread.join()
            return name, answers
        thread.join()
    raise AssertionError("the answer was always quicker than the shot")


def test_a_create_cut_by_the_wardens_death_is_done_once(own: Server, named: str) -> None:
    before = living(own.wire)
    name, answers = shot_between(own, named, with_gates=False)
    assert answers[0].status == 201, answers[0].body  # its gate has asked the next warden
    again = ask(own.wire, name, {"templateID": "base", "timeout": 100})
    assert again.body == answers[0].body
    assert answers[0].json()["sandboxID"] in living(own.wire) - before


def test_a_create_that_nobody_answered_is_unknown_and_never_done_again(own: Server, named: str) -> None:
    name, answers = shot_between(own, named, with_gates=True)
    assert not answers
    boxes = living(own.wire)
    body = {"templateID": "base", "timeout": 100}
    got = eventually(lambda: ask(own.wire, name, body))
    if got.status == 409:  # for as long as another gate could still ask
        assert refused(got, 409, "idempotency_in_progress")
        assert (got.headers["Should-Retry"], got.headers["Retry-After"]) == ("true", "1")
    assert refused(ask(own.wire, name, PLAIN), 409, "idempotency_request_mismatch")
    got = eventually(lambda: (a := ask(own.wire, name, body)).status == 422 and a)
    assert refused(got, 422, "idempotency_outcome_unknown")
    assert refused(ask(own.wire, name, body), 422, "idempotency_outcome_unknown")
    assert living(own.wire) == boxes


def test_a_full_table_refuses_new_keys_and_knows_the_old(own: Server, named: str) -> None:
    full = another_team(own, f"full-{named}")
    missing = {"templateID": f"none-{named}"}
    for number in range(MOST):
        assert ask(full, f"n-{number}", missing).status == 404
    got = ask(full, "one-more", missing)
    assert got.status == 503, got.body
    assert f"{MOST} of your team are kept" in got.json()["message"]
    assert ask(full, "n-0", missing).status == 404
    assert refused(ask(full, "n-0"), 409, "idempotency_request_mismatch")
    assert json.loads(ask(full, None, missing).body)["code"] == 404


def test_a_key_is_new_again_when_its_time_is_over() -> None:
    with own_server("--idempotency-seconds", "3", "--pool", "1") as made:
        began = time.monotonic()
        first = ask(made.wire, "k")
        while time.monotonic() < began + 2:  # repeats don't prolong it
            assert ask(made.wire, "k").body == first.body
            time.sleep(0.3)  # some repeats in these two seconds
        time.sleep(max(0.0, began + 4 - time.monotonic()))  # the time that keys are kept here
        after = ask(made.wire, "k", PLAIN | {"timeout": 60})
        assert after.status == 201, after.body
        assert after.json()["sandboxID"] != first.json()["sandboxID"]
