# SPDX-License-Identifier: Apache-2.0
"""Examples that go out: the server and the host that its boxes may reach live in network namespaces of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import compiled, copied, libraries, python, run
from support.far_side import far_side, seen
from support.server import own_server
from support.world import Abroad, World

KEY = "sk-0d51-never-in-a-box"
SAID = ["the API: 200", "another host: refused", "an address: refused", "the key: None"]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def variables(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How to reach a server whose boxes find api.example.com in the test's own world."""
    with far_side(world, tmp_path_factory.mktemp("far")) as folder:
        made = Abroad(world)
        made.resolve_there()
        with own_server("--egress-roots", str(folder / "ca.pem"), made=made) as server:
            assert server.key
            yield {"E2B_API_KEY": server.key, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url}


def check(out: str, world: World) -> None:
    lines = out.splitlines()
    assert len(lines) == 4 and all(line.startswith(said) for line, said in zip(lines, SAID, strict=True)), out
    assert KEY not in out
    asked = [each["fields"]["authorization"] for each in seen(world) if each.get("path") == "/quiet"]
    assert asked == [f"Bearer {KEY}"]


def test_untrusted_code_uses_a_key_that_it_never_sees(
    world: World, variables: dict[str, str], tmp_path: Path
) -> None:
    program = copied("secret-api", tmp_path) / "untrusted.py"
    out = python(program, API_URL="https://api.example.com/quiet", API_KEY=KEY, **variables)
    check(out, world)


def test_the_same_in_c(world: World, variables: dict[str, str], tmp_path: Path) -> None:
    program = compiled(copied("secret-api-c", tmp_path))
    api = {"API_HOST": "api.example.com", "API_PATH": "/quiet", "API_KEY": KEY, "LD_LIBRARY_PATH": libraries()}
    out = run([str(program)], program.parent, variables | api)
    check(out, world)
