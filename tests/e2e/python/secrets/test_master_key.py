# SPDX-License-Identifier: Apache-2.0
"""Where values lie, what they are sealed by, and what happens when that is missing, another one, or exchanged."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support.server import Server, binary, own_server
from support.tenants import cloche
from support.waiting import eventually

VALUE = "sk-v4lue-that-lies-nowhere-in-the-clear"
OTHER = "sk-0ther-v4lue-that-lies-nowhere-either"


def keep(server: Server, name: str, value: str = VALUE) -> None:
    answer = server.wire.call("POST", "/secrets", {"name": name, "value": value})
    assert answer.status == 201, answer.text


def key_file(server: Server) -> Path:
    return server.data / "secrets.key"


def ask(server: Server, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command line, which may fail."""
    environment = os.environ | {"CLOCHE_DATA": str(server.data)}
    command = [binary(), "secret", *words]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def readable(server: Server) -> tuple[int, int]:
    """How many values open, and how many do not."""
    told = ask(server, "check").stdout
    found = re.search(r"^readable +(\d+)\nunreadable +(\d+)$", told, re.M)
    assert found, told
    return int(found[1]), int(found[2])


def rows(server: Server, query: str) -> list[tuple[object, ...]]:
    link = sqlite3.connect(f"file:{server.data}/cloche.db?mode=ro", uri=True, timeout=10)
    try:
        return link.execute(query).fetchall()
    finally:
        link.close()


def change(server: Server, query: str, *values: object) -> None:
    """What somebody does who may write the database but has no key."""
    link = sqlite3.connect(server.data / "cloche.db", timeout=10)
    try:
        with link:
            assert link.execute(query, values).rowcount == 1
    finally:
        link.close()


def holds(server: Server, text: str) -> list[str]:
    """The server's files, its log and its database among them, that hold this text; not the disks of boxes."""
    mark = text.encode()
    found = []
    for folder, names, files in os.walk(server.home):
        names[:] = [name for name in names if name not in ("boxes", "runtime", "disks")]
        paths = [Path(folder) / name for name in files]
        found += [
            str(p) for p in paths if p.is_file() and p.stat().st_size < 64 << 20 and mark in p.read_bytes()
        ]
    return found


def test_a_value_lies_nowhere_in_the_clear(server: Server) -> None:
    wire = server.wire
    keep(server, "first")
    assert wire.call("POST", "/secrets/first", {"value": OTHER}).status == 200
    key = {"Idempotency-Key": "secret-once"}
    assert wire.call("POST", "/secrets", {"name": "again", "value": VALUE}, headers=key).status == 201
    assert wire.call("POST", "/secrets", {"name": "again", "value": VALUE}, headers=key).status == 409
    bad = {"name": "first", "value": VALUE, "metadata": {"a": 5}}
    assert wire.call("POST", "/secrets", bad).status == 400
    assert wire.call("POST", f"/secrets/{VALUE}", {"value": VALUE}).status == 404
    made = ask(server, "set", "by-command", stdin=VALUE + "\n")
    assert made.returncode == 0, made.stderr
    assert VALUE not in made.stdout + made.stderr
    box = wire.create()
    for pid in [server.pid, *server.gates(), *server.wardens()]:
        for name in ("cmdline", "environ"):
            assert VALUE.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    box.kill()
    server.stop()
    assert holds(server, "by-command")  # the search finds what is there
    for text in (VALUE, OTHER):
        assert holds(server, text) == []
    assert key_file(server).stat().st_mode & 0o777 == 0o600


def test_a_value_is_no_argument(server: Server) -> None:
    assert "arguments can be read" in ask(server, "set", "name", VALUE).stderr
    assert ask(server, "set", "name", "--value", VALUE).returncode == 1
    assert ask(server, "set", "name", stdin="").returncode == 1
    assert ask(server, "set", "name", stdin="two\nlines\n").returncode == 1
    assert ask(server, "list").stdout.count("\n") == 1


def test_the_command_manages_secrets(server: Server, tmp_path: Path) -> None:
    (tmp_path / "value").write_text(VALUE)
    first = ask(server, "set", "Mine", "--file", str(tmp_path / "value"), "--meta", "owner=me", "--meta", "use=a=b")
    assert re.fullmatch(r"sec_\w{20} version 1\n", first.stdout), first.stderr
    assert ask(server, "set", "mine", stdin=OTHER).stdout == first.stdout.replace("version 1", "version 2")
    told = ask(server, "get-metadata", "mine").stdout
    assert 'metadata  {"owner":"me","use":"a=b"}' in told
    assert "version   2" in told
    for i in range(99):
        keep(server, f"other-{i}")
    assert len(ask(server, "list").stdout.splitlines()) == 101
    assert server.wire.call("GET", "/secrets/MINE").json()["metadata"] == {"owner": "me", "use": "a=b"}
    assert ask(server, "rm", "mine").returncode == 0
    assert "no such secret" in ask(server, "rm", "mine").stderr
    assert server.wire.call("GET", "/secrets/mine").status == 404


def test_rows_that_were_moved_or_changed_do_not_open(server: Server) -> None:
    for name in ("one", "two", "three", "four"):
        keep(server, name)
    assert readable(server) == (4, 0)
    team = cloche(server, "team", "create", "thieves").split()[0]
    change(server, "UPDATE secret SET team=? WHERE name='one'", team)
    assert readable(server) == (3, 1)
    change(server, "UPDATE secret SET version=7 WHERE name='two'")
    change(server, "UPDATE secret SET name='five' WHERE name='three'")
    sealed = bytearray(rows(server, "SELECT sealed FROM secret WHERE name='four'")[0][0])  # type: ignore[call-overload]
    sealed[-1] ^= 1
    change(server, "UPDATE secret SET sealed=? WHERE name='four'", bytes(sealed))
    done = ask(server, "check")
    assert done.returncode == 1
    assert "4 values do not open" in done.stderr
    assert ask(server, "rotate-key").returncode == 1  # nothing of them is lost
    assert len(key_file(server).read_text().split()) == 2


@pytest.mark.parametrize("how", ["missing", "another", "unreadable", "broken"])
def test_without_its_key_nothing_is_lost(how: str) -> None:
    with own_server() as server:
        keep(server, "kept")
        before = rows(server, "SELECT * FROM secret")
        file = key_file(server)
        text = file.read_text()
        server.stop()
        if how == "missing":
            file.unlink()
        elif how == "unreadable":
            file.chmod(0o644)
        else:
            file.write_text("ab" * 32 if how == "another" else "no key at all")
        server.start()
        box = server.wire.create()  # all else works
        box.kill()
        for answer in (
            server.wire.call("POST", "/secrets", {"name": "new", "value": OTHER}),
            server.wire.call("POST", "/secrets/kept", {"value": OTHER}),
        ):
            assert answer.status == 403
            assert "master key" in answer.json()["message"]
            assert str(server.data) not in answer.text
        assert server.wire.call("GET", "/secrets/kept").json()["currentVersion"] == 1
        remedy = {"missing": "put it back", "another": "add it there", "unreadable": "chmod 600", "broken": "64 hex"}
        told = ask(server, "check")
        assert told.returncode == 1
        assert remedy[how] in told.stderr
        assert str(file) in told.stderr
        assert remedy[how] in server.log()
        assert ask(server, "rotate-key").returncode == 1
        assert rows(server, "SELECT * FROM secret") == before
        assert file.exists() == (how != "missing")
        file.write_text(text)  # no restart is needed
        file.chmod(0o600)
        eventually(lambda: ask(server, "check").returncode == 0, 10)
        assert readable(server) == (1, 0)
        assert server.wire.call("POST", "/secrets/kept", {"value": OTHER}).status == 200


def test_secrets_without_their_key_can_be_given_up(server: Server) -> None:
    keep(server, "lost")
    server.stop()
    key_file(server).write_text("cd" * 32)
    server.start()
    assert server.wire.call("DELETE", "/secrets/lost").status == 204
    eventually(lambda: server.wire.call("POST", "/secrets", {"name": "new", "value": VALUE}).status == 201, 10)
    assert key_file(server).read_text() == "cd" * 32


def test_a_key_of_the_environment_reaches_the_warden_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = "11" * 32, "22" * 32
    monkeypatch.setenv("CLOCHE_SECRETS_KEY", old)
    with own_server() as server:
        keep(server, "kept")
        box = server.wire.create()
        for pid in [*server.gates(), *server.senders(), *server.wardens()]:
            assert old.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        assert old not in box.run("cat /proc/*/environ", user="root")[1]
        box.kill()
        assert not key_file(server).exists()
        assert "CLOCHE_SECRETS_KEY" in ask(server, "rotate-key").stderr
        server.stop()
        monkeypatch.setenv("CLOCHE_SECRETS_KEY", f"{new} {old}")
        server.start()
        first = rows(server, "SELECT key FROM secret")
        eventually(lambda: "sealed by the master key" in server.log(), 10)
        server.stop()
        monkeypatch.setenv("CLOCHE_SECRETS_KEY", new)
        server.start()
        assert readable(server) == (1, 0)
        assert first
        assert holds(server, old) == holds(server, new) == []


def test_a_key_can_be_a_systemd_credential(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cloche-secrets-key").write_text("33" * 32 + "\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with own_server() as server:
        keep(server, "kept")
        assert not key_file(server).exists()
        assert str(tmp_path) in ask(server, "check").stdout


def test_the_key_is_exchanged_while_the_server_works(server: Server) -> None:
    for i in range(60):
        keep(server, f"s{i}")
    old = key_file(server).read_text().strip()
    over = threading.Event()
    answers: list[int] = []

    def write() -> None:
        n = 0
        while not over.is_set():
            n += 1
            answers.append(server.wire.call("POST", f"/secrets/s{n % 60}", {"value": OTHER}).status)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            done = ask(server, "rotate-key")
            assert done.returncode == 0, done.stderr
    finally:
        over.set()
        writer.join()
    assert set(answers) == {200}
    new = key_file(server).read_text().split()
    assert len(new) == 1
    assert new != [old]
    assert len(rows(server, "SELECT DISTINCT key FROM secret")) == 1
    assert readable(server) == (60, 0)
    server.stop()
    server.start()
    assert readable(server) == (60, 0)
    assert holds(server, old) == []


def test_kill_9_in_the_middle_of_an_exchange_loses_nothing() -> None:
    count = 400
    with own_server("--team-secrets-max", str(count)) as server:
        for i in range(count):
            keep(server, f"s{i}", f"{VALUE}-{i}")
        mixed = 0
        for round_ in range(4):
            command = subprocess.Popen(
                [binary(), "secret", "rotate-key", "--data", str(server.data)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            first = rows(server, "SELECT DISTINCT key FROM secret")
            deadline = time.monotonic() + 5
            while round_ and command.poll() is None and time.monotonic() < deadline:
                if rows(server, "SELECT DISTINCT key FROM secret") != first:
                    break
            for pid in server.wardens():
                os.kill(pid, signal.SIGKILL)
            command.wait(30)
            mixed += len(rows(server, "SELECT DISTINCT key FROM secret")) > 1
            eventually(lambda: ask(server, "check").returncode == 0, 30, state=server.log)
            assert readable(server) == (count, 0)
            # What was begun is ended by the warden that follows.
            eventually(lambda: len(key_file(server).read_text().split()) == 1, 30, state=server.log)
            assert len(rows(server, "SELECT DISTINCT key FROM secret")) == 1
            assert readable(server) == (count, 0)
        assert mixed, "no kill came in the middle of an exchange"
