# SPDX-License-Identifier: Apache-2.0
"""Plays all scenarios with every SDK, each once per session and two at a time, and keeps what they said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from table import players, scenarios

HERE = Path(__file__).resolve().parent
SECONDS = 140
AT_ONCE = 2

Said = dict[str, list[dict[str, Any]]]


def play(name: str, words: list[str], variables: dict[str, str]) -> Said:
    """What a player said to each scenario; a player that ends early has said nothing to the rest."""
    done = subprocess.run(
        words, input=json.dumps(scenarios(name)), env=os.environ | variables | {"UNIQUE": uuid.uuid4().hex[:10]},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    said = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        said[one["name"]] = one["results"]
    if done.returncode != 0 or done.stderr.strip():
        print(f"{name} ended with {done.returncode}\n{done.stderr[-3000:]}", file=sys.stderr)
    return said


@pytest.fixture(scope="session")
def played() -> Iterator[dict[str, Future[Said]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(play, name, *command) for name, command in players().items()}
