# SPDX-License-Identifier: Apache-2.0
"""`cloche template make`: templates of the recipes that come with the server, for all teams, without a restart.

The store is one of the test's own that shares the built layers: `base` is made in it again within a second.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.server import TEMPLATES, Server, binary, own_server

RECIPES = {"base", "code-interpreter-v1", "mcp-gateway", "desktop", "claude", "codex", "opencode"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    (store / "templates").mkdir(parents=True)
    (store / "layers").symlink_to(Path(TEMPLATES) / "layers")
    return store


@pytest.fixture
def server(store: Path) -> Iterator[Server]:
    with own_server("--templates", str(store), "--pool", "0") as made:
        yield made


def make(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    command = [binary(), "template", "make", *words, "--data", str(server.data)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(text: str) -> dict[str, str]:
    return {line.split()[0]: line for line in text.splitlines()}


def test_a_made_template_is_there_for_every_team_at_once(server: Server, store: Path) -> None:
    access = {"api_key": server.key, "api_url": server.url, "sandbox_url": server.url}
    assert "not made" in rows(make(server, "--list").stdout)["base"]
    with pytest.raises(e2b.SandboxException):
        e2b.Sandbox.create("base", **access)

    done = make(server, "base")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("base is build "), done.stdout
    assert json.loads((store / "templates/base.json").read_text())["name"] == "base"

    box = e2b.Sandbox.create("base", **access)
    try:
        assert box.commands.run("id -un").stdout == "user\n"
    finally:
        box.kill()
    assert "not made" not in rows(make(server, "--list").stdout)["base"]


def test_making_it_again_keeps_the_build(server: Server) -> None:
    first, second = make(server, "base"), make(server, "base")
    assert first.stdout == second.stdout != ""


def test_the_list_names_every_recipe_and_what_it_is_for(server: Server) -> None:
    listed = rows(make(server, "--list").stdout)
    assert set(listed) == RECIPES
    assert "e2b-desktop" in listed["desktop"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("castle",), "no recipe for a template 'castle'; there are: base claude code-interpreter-v1 codex desktop"),
        (("base", "--all-of-it"), "'make' has no option '--all-of-it'; it takes names of recipes, --default or --list"),
        (("--list", "base"), "'make --list' takes no name, but 'base' was given"),
        ((), "'template make' takes other arguments"),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_told(server: Server, words: tuple[str, ...], complaint: str) -> None:
    done = make(server, *words)
    assert done.returncode != 0
    assert complaint in done.stderr
