# SPDX-License-Identifier: Apache-2.0
"""Which scenarios there are, who plays them, and who is compared with whom."""

from __future__ import annotations

import functools
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENTS = ROOT / "tests/e2e/js/node_modules"
PLAYERS = HERE / "players"

Command = tuple[list[str], dict[str, str]]

# ours -> the stock player that it must agree with. The two flavours of the stock Python SDK must agree as well, else a
# scenario says something about the player and not about the SDK.
COMPARED = set(os.environ.get("COMPARED", "python-sync python-async typescript c").split())  # a part, by hand
PAIRS = {
    "stock-python-async": "stock-python-sync",
    "python-sync": "stock-python-sync",
    "python-async": "stock-python-async",
    "typescript": "stock-typescript",
    "c": "stock-python-sync",
}


def python(module: str, flavour: str) -> Command:
    return [sys.executable, str(PLAYERS / "player.py"), module, flavour], {"PYTHONPATH": str(ROOT / "sdk/python/src")}


def node(module: Path) -> Command:
    return ["node", str(PLAYERS / "player.mjs"), str(module)], {}


def ours() -> dict[str, Command]:
    """Our SDKs that are compared, as scripts/sdk builds them."""
    every: dict[str, Command] = {
        "python-sync": python("cloche", "sync"),
        "python-async": python("cloche", "async"),
        "typescript": node(ROOT / "sdk/typescript/dist/index.js"),
        "c": ([str(ROOT / os.environ.get("BUILD", "build") / "sdk/c/tests/driver")], {}),
    }
    return {name: command for name, command in every.items() if name in COMPARED}


@functools.cache
def players() -> dict[str, Command]:
    stock = {
        "stock-python-sync": python("e2b_code_interpreter", "sync"),
        "stock-python-async": python("e2b_code_interpreter", "async"),
        "stock-typescript": node(CLIENTS / "@e2b/code-interpreter/dist/index.mjs"),
    }
    return stock | ours()


@functools.cache
def every_scenario() -> list[dict[str, Any]]:
    """All of them, or those with the text of SCENARIO in their name."""
    files = sorted((HERE / "scenarios").glob("*.toml"))
    found = [one for file in files for one in tomllib.loads(file.read_text())["scenario"]]
    return [one for one in found if os.environ.get("SCENARIO", "") in one["name"]]


def scenarios(player: str) -> list[dict[str, Any]]:
    """Those of a player: `only` names the SDKs a scenario is for, by the end of their names."""
    return [one for one in every_scenario() if any(player.endswith(end) for end in one.get("only", [""]))]


def cases() -> list[tuple[str, str]]:
    return [(player, one["name"]) for player in PAIRS if player in players() for one in scenarios(player)]
