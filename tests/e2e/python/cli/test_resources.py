# SPDX-License-Identifier: Apache-2.0
"""What a team has, by the commands for a named server: keys, teams, nodes, secrets, volumes, templates, the console."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import URL, Cloche
from support.server import own_server
from support.terminal import Terminal

THERE = ("--url", URL)
ELSEWHERE = {"CLOCHE_DATA": "/nonexistent"}


def fetch(path: str, key: str, method: str = "GET") -> int:
    request = urllib.request.Request(URL + path, headers={"X-API-Key": key}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def test_a_key_is_made_renamed_and_deleted(cloche: Cloche) -> None:
    made = json.loads(cloche("key", "create", "by hand", "--json", *THERE).stdout)
    assert fetch("/teams", made["key"]) == 200
    assert cloche("key", "rename", made["id"], "by\x1b[2J hand", *THERE).returncode == 0
    listed = cloche("key", "list", *THERE).stdout.decode()
    assert made["id"] in listed
    assert "by?[2J hand" in listed
    assert made["key"] not in listed
    assert cloche("key", "delete", made["id"], *THERE).returncode == 0
    assert fetch("/teams", made["key"]) == 401
    again = cloche("key", "delete", made["id"], *THERE)
    assert again.returncode == 1
    assert made["id"].encode() in again.stderr


def test_the_keys_team_is_told_without_the_key(cloche: Cloche) -> None:
    (team,) = json.loads(cloche("team", "list", "--json", *THERE, env={"CLOCHE_ADMIN_TOKEN": ""}).stdout)
    assert team["apiKey"] is None
    listed = cloche("team", "list", *THERE, env={"CLOCHE_ADMIN_TOKEN": ""})
    assert listed.stdout.decode().splitlines()[0].split() == ["ID", "NAME"]
    assert team["teamID"].encode() in listed.stdout


@pytest.fixture(scope="module")
def administered() -> Iterator[dict[str, str]]:
    with own_server("--pool", "0") as server:
        assert server.key
        yield {
            "E2B_API_URL": server.url,
            "E2B_SANDBOX_URL": server.url,
            "E2B_API_KEY": server.key,
            "CLOCHE_ADMIN_TOKEN": server.admin,
            **ELSEWHERE,
        }


def test_an_administrator_sees_nodes_and_makes_teams(cloche: Cloche, administered: dict[str, str]) -> None:
    heads, row = cloche("node", "list", env=administered).stdout.decode().splitlines()
    assert heads.split()[:2] == ["ID", "STATUS"]
    assert row.split()[:2] == ["local", "ready"]
    shown = json.loads(cloche("node", "show", "local", "--json", env=administered).stdout)
    assert shown["metrics"]["cpuCount"] >= 1
    for verb, status in (("drain", "draining"), ("ready", "ready")):
        assert cloche("node", verb, "local", env=administered).returncode == 0
        assert json.loads(cloche("node", "list", "--json", env=administered).stdout)[0]["status"] == status
    made = cloche("team", "create", "others", "--boxes", "3", env=administered).stdout.decode().strip()
    assert cloche("team", "limit", made, "--boxes", "5", "--paused", "7", env=administered).returncode == 0
    teams = json.loads(cloche("team", "list", "--json", env=administered).stdout)
    limits = next(team["limits"] for team in teams if team["teamID"] == made)
    assert (limits["sandboxes"], limits["pausedSandboxes"]) == (5, 7)
    wrong = cloche("team", "limit", made, "--boxes", "many", env=administered)
    assert (wrong.returncode, b"'many'" in wrong.stderr) == (2, True)
    keyless = {**administered, "E2B_API_KEY": ""}
    assert cloche("node", "list", env=keyless).returncode == 0
    refused = cloche("node", "list", env={**administered, "CLOCHE_ADMIN_TOKEN": "wrong"})
    assert (refused.returncode, b"X-Admin-Token" in refused.stderr) == (1, True)
    without = cloche("node", "list", env={**administered, "CLOCHE_ADMIN_TOKEN": ""})
    assert (without.returncode, b"CLOCHE_ADMIN_TOKEN" in without.stderr) == (2, True)


def test_a_secret_is_kept_by_a_prompt_a_pipe_and_a_file_and_never_told(cloche: Cloche, tmp_path: Path) -> None:
    name = f"s{uuid.uuid4().hex[:12]}"
    typed = Terminal("secret", "set", name, "--meta", "for=tests", *THERE)
    typed.until(b"Value: ")
    typed.type("very-hidden\n")
    assert typed.end() == 0
    assert b"very-hidden" not in typed.seen
    assert json.loads(cloche("secret", "set", name, "--json", *THERE, given=b"other\n").stdout) == {"version": 2}
    (tmp_path / "value").write_bytes(b"third\n")
    assert cloche("secret", "set", name, "--file", "value", *THERE).returncode == 0
    listed = json.loads(cloche("secret", "list", "--json", *THERE).stdout)
    assert [(s["version"], s["metadata"]) for s in listed if s["name"] == name] == [(3, {"for": "tests"})]
    shown = cloche("secret", "get-metadata", name, *THERE).stdout.decode()
    assert "VERSION" in shown
    assert "third" not in shown + str(listed)
    assert cloche("secret", "rm", name, *THERE).returncode == 0
    assert cloche("secret", "get-metadata", name, *THERE).returncode == 1
    assert cloche("secret", "set", name, *THERE, given=b"").returncode == 2


def test_a_volume_takes_files_and_trees_and_gives_them_back(cloche: Cloche, tmp_path: Path) -> None:
    name = f"v_{uuid.uuid4().hex[:12]}"
    assert cloche("volume", "create", name, *THERE).returncode == 0
    tree = tmp_path / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / "deep/er/one").write_bytes(b"1" * 100_000)
    (tree / "two").write_bytes(b"2")
    (tree / "link").symlink_to("/etc/passwd")
    try:
        into = cloche("volume", "cp", "-r", "tree", f"{name}:/kept", *THERE)
        assert into.returncode == 0, into.stderr
        assert b"1 entries" in into.stderr
        assert cloche("volume", "cp", "tree/two", f"{name}:/new/dir/", *THERE).returncode == 0
        rows = json.loads(cloche("volume", "ls", f"{name}:/kept", "--json", *THERE).stdout)
        assert {(row["name"], row["type"]) for row in rows} == {("deep", "directory"), ("two", "file")}
        assert cloche("volume", "cat", f"{name}:/new/dir/two", *THERE).stdout == b"2"
        assert cloche("volume", "cp", "-r", f"{name}:/kept", "back", *THERE).returncode == 0
        assert (tmp_path / "back/deep/er/one").read_bytes() == b"1" * 100_000
        assert cloche("volume", "cp", f"{name}:/kept", "flat", *THERE).returncode == 1
        assert cloche("volume", "remove", f"{name}:/kept", *THERE).returncode == 0
        assert cloche("volume", "ls", f"{name}:/kept", *THERE).returncode == 1
        assert name in cloche("volume", "list", *THERE).stdout.decode()
    finally:
        assert cloche("volume", "rm", name, *THERE).returncode == 0
    gone = cloche("volume", "ls", f"{name}:/", *THERE)
    assert (gone.returncode, b"no such volume" in gone.stderr) == (1, True)


def test_templates_are_built_compared_rolled_back_and_deleted(cloche: Cloche, tmp_path: Path) -> None:
    name = f"cli-{uuid.uuid4().hex[:10]}"
    (tmp_path / "Dockerfile").write_text("FROM base\nCOPY word /home/user/word\nRUN cat /home/user/word\n")
    (tmp_path / "word").write_text(f"first-{name}\n")
    try:
        first = cloche("template", "build", name, "-f", "Dockerfile", *THERE)
        assert first.returncode == 0, first.stderr
        assert f"first-{name}".encode() in first.stdout
        steps = ("--run", "echo $WORD >/home/user/second", "--tag", "v2")
        second = cloche("template", "build", name, "--env", "WORD=two", *steps, "--json", *THERE)
        build = json.loads(second.stdout.splitlines()[-1])["buildID"]
        history = json.loads(cloche("template", "history", name, "--json", *THERE).stdout)
        assert [(row["buildID"] == build, sorted(row["tags"])) for row in history][0] == (True, ["default", "v2"])
        before = history[1]["buildID"]
        changed = cloche("template", "diff", f"{name}:{before[:8]}", f"{name}:v2", *THERE).stdout.decode()
        assert "added /home/user/second" in changed
        assert cloche("template", "rollback", name, "previous", *THERE).returncode == 0
        rolled = json.loads(cloche("template", "history", name, "--json", *THERE).stdout)
        assert next(row["tags"] for row in rolled if row["buildID"] == before) == ["default"]
        assert cloche("template", "rollback", name, build[:9], *THERE).returncode == 0
        assert cloche("template", "tag", f"{name}:v2", "stable", *THERE).returncode == 0
        assert cloche("template", "untag", name, "v2", *THERE).returncode == 0
        tags = json.loads(cloche("template", "history", name, "--json", *THERE).stdout)[0]["tags"]
        assert sorted(tags) == ["default", "stable"]
        assert cloche("template", "publish", name, *THERE).returncode == 0
        listed = json.loads(cloche("template", "list", "--json", *THERE).stdout)
        mine = next(row for row in listed if any(name in n for n in row["names"]))
        assert mine["public"] is True
        assert any(row["names"] == ["cloche/base"] for row in listed)
        assert f"first-{name}".encode() in cloche("template", "log", name, before[:8], *THERE).stdout
        assert cloche("template", "show", name, *THERE).returncode == 0
        unknown = cloche("template", "rollback", name, "ffffffff", *THERE)
        assert (unknown.returncode, b"ffffffff" in unknown.stderr) == (1, True)
    finally:
        assert cloche("template", "delete", name, *THERE).returncode == 0
    assert cloche("template", "show", name, *THERE).returncode == 1


def test_a_build_that_fails_says_where(cloche: Cloche) -> None:
    name = f"cli-{uuid.uuid4().hex[:10]}"
    done = cloche("template", "build", name, "--run", "echo before; exit 3", *THERE)
    assert done.returncode == 1
    assert b"exit status 3" in done.stderr
    assert cloche("template", "log", name, *THERE).returncode == 1
    cloche("template", "delete", name, *THERE)


def test_a_long_build_shows_on_a_terminal_how_far_it_is(cloche: Cloche) -> None:
    name = f"cli-{uuid.uuid4().hex[:10]}"
    steps = [word for i in range(3) for word in ("--run", f"echo step-{i}; sleep 0.7")]
    terminal = Terminal("template", "build", name, *steps, *THERE)
    terminal.until(b"step-2")
    shown = terminal.until(b"is ready")
    assert terminal.end() == 0
    assert b"%" in shown
    assert b"[####" in shown
    piped = cloche("template", "build", name, "--no-cache", *steps, *THERE)
    assert b"\r" not in piped.stdout + piped.stderr
    cloche("template", "delete", name, *THERE)


def test_a_link_signs_in_without_the_key_and_once(cloche: Cloche) -> None:
    told = json.loads(cloche("open", "--json", "--key", os.environ["E2B_API_KEY"]).stdout)["url"]
    base, code = told.split("/#login=")
    assert base == URL
    assert os.environ["E2B_API_KEY"] not in told
    for wanted in (201, 401):
        request = urllib.request.Request(
            URL + "/console/session", headers={"X-Console-Code": code}, method="POST", data=b""
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status = answer.status
                made = json.load(answer)
        except urllib.error.HTTPError as e:
            status = e.code
        assert status == wanted
    assert cloche("key", "delete", made["keyID"], *THERE).returncode == 0
    assert fetch("/console-links", "e2b_" + "0" * 40, "POST") == 401


def test_root_without_a_server_here_uses_the_one_that_the_environment_names(cloche: Cloche) -> None:
    named = cloche("template", "list", "--json", env=ELSEWHERE)
    assert named.returncode == 0, named.stderr
    assert json.loads(named.stdout)
    local = cloche("template", "list")
    assert b"code-interpreter-v1" in local.stdout


def test_words_that_are_wrong_are_named_with_the_nearest(cloche: Cloche) -> None:
    wrong = cloche("key", "lsit", *THERE)
    assert (wrong.returncode, b"did you mean 'list'" in wrong.stderr) == (2, True)
    few = cloche("key", "rename", "x", *THERE)
    assert (few.returncode, b"ID NAME" in few.stderr) == (2, True)
    both = cloche("template", "--help").stdout.decode()
    assert "rollback NAME[:TAG] BUILD" in both
    assert "For root on the server itself" in both
    assert "cloche template gc" in both
