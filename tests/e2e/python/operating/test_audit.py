# SPDX-License-Identifier: Apache-2.0
"""The audit log: who asked the API for what, when and from where; never a secret; bounded; read by `cloche audit`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import Server, binary, children, own_server, user_of
from support.tenants import cloche, two_teams
from support.waiting import eventually
from support.wire import Wire

AUDIT_USER = 64995  # the setting audit_uid


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--gates", "2", "--pool", "0") as made:
        yield made


def records(server: Server, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cloche(server, "audit", "--json", "-n", "100000", *words).splitlines()]


def of(server: Server, **members: Any) -> list[dict[str, Any]]:
    return [r for r in records(server) if all(r.get(name) == value for name, value in members.items())]


def found(server: Server, **members: Any) -> dict[str, Any]:
    return eventually(lambda: of(server, **members), 10, state=lambda: str(records(server)))[-1]


def test_a_change_is_recorded_with_who_what_when_and_from_where(server: Server) -> None:
    before = time.time()
    box = server.wire.create(timeout=300)
    made = found(server, method="POST", route="sandboxes", made=box.id)
    box.kill()
    killed = found(server, method="DELETE", id=box.id)
    assert killed["route"] == "sandboxes/{id}"
    assert (made["status"], killed["status"]) == (201, 204)
    assert made["who"] == "key"
    keys = cloche(server, "key", "list")
    assert made["key"] in keys
    assert made["team"] in cloche(server, "team", "list")
    assert made["client"].startswith("127.0.0.1:")
    when = time.mktime(time.strptime(made["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert before - 2 <= when <= time.time() + 2
    assert of(server, method="GET") == []  # reads are left out unless `audit` is all


def test_refusals_are_recorded_without_what_was_shown(server: Server) -> None:
    wrong = "e2b_" + "ab12" * 10
    secret = {"X-API-Key": wrong, "User-Agent": "a-stranger\x09x", "X-Forwarded-For": "203.0.113.9"}
    assert server.wire.call("GET", "/v2/sandboxes?apiKey=" + wrong, headers=secret, with_key=False).status == 401
    refused = found(server, status=401, forwardedFor="203.0.113.9")
    assert refused["who"] == "nobody"
    assert "team" not in refused
    assert "key" not in refused
    admin = server.wire.call("GET", "/nodes", headers={"X-Admin-Token": "wrong-" + "z" * 20}, with_key=False)
    assert admin.status == 401
    found(server, status=401, route="nodes")
    assert server.wire.call("POST", "/no/such/" + wrong, with_key=False).status == 404
    pasted = f"/admin/teams/6f3c0000-0000-0000-0000-000000000000/api-keys/{wrong}"
    assert server.wire.call("DELETE", pasted, headers={"X-Admin-Token": server.admin}, with_key=False).status == 404
    found(server, method="DELETE", status=404, who="admin")
    text = "".join(file.read_text() for file in (server.data / "audit/log").iterdir())
    assert wrong not in text
    assert "zzzz" not in text


def test_neither_keys_nor_values_of_secrets_get_into_the_log(server: Server) -> None:
    value = "the-value-of-a-secret-0123456789"
    made = server.wire.call("POST", "/secrets", {"name": "for-the-audit", "value": value})
    assert made.status in (200, 201), made.body
    fresh = server.wire.call("POST", "/api-keys", {"name": "another"})
    assert fresh.status == 201
    found(server, route="api-keys", status=201, made=fresh.json()["id"])
    found(server, route="secrets", method="POST")
    text = (server.data / "audit/log/audit.jsonl").read_text()
    for secret in (value, fresh.json()["key"], server.key, server.admin):
        assert secret
        assert secret not in text


def test_strangers_can_not_crowd_out_the_records_of_others(server: Server) -> None:
    folder = server.data / "audit/log"
    cloche(server, "key", "create", "before-the-flood")
    kept = found(server, who="root", route="key_create")
    before = (folder / "audit.jsonl").stat().st_size
    began = time.monotonic()
    asked = 1500
    loud = {"User-Agent": "u" * 1000, "X-Forwarded-For": "f" * 1000}
    path = "/sandboxes/" + "%01%02%C2%9B" * 40 + "/pause"
    statuses = {server.wire.call("POST", path, headers=loud, with_key=False).status for _ in range(asked)}
    assert statuses == {401}
    most = 2 * (100 + 10 * (time.monotonic() - began + 1))  # of two gates: a burst, and ten a second
    flood = of(server, who="nobody", route="sandboxes/{id}/pause")
    assert 100 <= len(flood) <= min(most, asked - 1)
    assert set(flood[0]["id"]) == {"?"}
    assert max(len(json.dumps(record)) for record in flood) < 1000
    assert (folder / "audit.jsonl").stat().st_size == before
    assert kept in records(server)
    assert "\x9b" not in cloche(server, "audit", "-n", "5")


def test_teams_and_objects_can_be_asked_for(server: Server) -> None:
    other: Wire = two_teams(server).attacker
    box = other.create(timeout=300)
    box.kill()
    record = found(server, method="DELETE", id=box.id)
    assert {r["team"] for r in records(server, "--team", record["team"])} == {record["team"]}
    about = records(server, "--id", box.id)
    assert [r["method"] for r in about] == ["POST", "DELETE"]
    assert all(r["status"] >= 400 for r in records(server, "--refused"))
    shown = cloche(server, "audit", "-n", "1", "--id", box.id)
    assert f"DELETE /sandboxes/{{id}}  id={box.id}" in shown


def test_commands_of_the_hosts_root_are_recorded_with_user_and_answer(server: Server) -> None:
    box = server.wire.create(timeout=300)
    cloche(server, "kill", box.id)
    killed = found(server, who="root", route="box_kill", id=box.id)
    assert killed["method"] == "warden.sock"
    assert killed["client"].startswith("uid=0 pid=")
    assert killed["status"] == 200
    assert "gate" not in killed
    text = cloche(server, "key", "create", "by-root")
    assert found(server, who="root", route="key_create")["status"] == 200
    log = (server.data / "audit/log/audit.jsonl").read_text()
    keys = [word for word in text.split() if word.startswith("e2b_")]
    assert keys
    assert all(key not in log for key in keys)
    cloche(server, "key", "list")
    nobody = [binary(), "kill", "i" + "0" * 19, "--data", str(server.data)]
    assert subprocess.run(nobody, capture_output=True, timeout=60, check=False).returncode != 0
    assert found(server, who="root", route="box_kill", status=404)["id"] == "i" + "0" * 19
    assert of(server, who="root", route="key_list") == []  # reads are left out unless `audit` is all
    assert "uid=0 pid=" in cloche(server, "audit", "-n", "1", "--id", box.id)


def audits(server: Server) -> list[int]:
    return [pid for pid in children(server.pid) if user_of(pid) == AUDIT_USER]


def test_the_role_has_no_rights_and_is_started_again(server: Server) -> None:
    (role,) = audits(server)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{role}/status").read_text().splitlines())
    assert status["CapEff"].strip() == "0" * 16
    assert status["Seccomp"].strip() == "2"
    assert status["NoNewPrivs"].strip() == "1"
    assert os.listdir(f"/proc/{role}/root") == []
    os.kill(role, signal.SIGKILL)
    eventually(lambda: audits(server) not in ([], [role]), 20, state=server.log)

    killed: list[str] = []

    def recorded_again() -> bool:
        box = server.wire.create(timeout=60)
        box.kill()
        killed.append(box.id)
        return any(r.get("id") in killed for r in of(server, method="DELETE"))

    eventually(recorded_again, 20, state=server.log)


def test_files_are_bounded_and_a_full_server_goes_on() -> None:
    flags = ("--audit-file-mb", "1", "--audit-files", "2", "--audit", "all", "--audit-team-rate", "100000")
    with own_server(*flags, "--gates", "1", "--pool", "0") as made:
        agent = {"User-Agent": "x" * 250, "X-Forwarded-For": "y" * 250}
        folder = made.data / "audit/log"

        def rotated() -> bool:
            for _ in range(400):
                made.wire.call("GET", "/v2/sandboxes", headers=agent)
            return len(list(folder.iterdir())) == 2 and len(list(folder.glob("audit-*"))) == 1

        eventually(rotated, 60, state=lambda: str(list(folder.iterdir())))
        first = next(iter(folder.glob("audit-*")))
        eventually(lambda: rotated() and not first.exists(), 60, state=lambda: str(list(folder.iterdir())))
        assert sum(file.stat().st_size for file in folder.iterdir()) <= 2 << 20
        assert all(r["who"] == "key" for r in records(made))


def test_nothing_runs_where_it_is_off() -> None:
    with own_server("--audit", "off", "--gates", "1", "--pool", "0") as made:
        made.wire.create(timeout=60).kill()
        assert audits(made) == []
        assert not (made.data / "audit").exists()
