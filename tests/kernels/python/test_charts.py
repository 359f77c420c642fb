# SPDX-License-Identifier: Apache-2.0
"""Charts against golden files: CLOCHE_GOLDEN=write rewrites them (then read the diff)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chart_cases import CASES, HEAD
from conftest import Client

GOLDEN = Path(__file__).parent / "golden"


def chart_of(kernel: Client, code: str) -> Any:
    outcome = kernel.run(HEAD + code)
    assert outcome.error is None, outcome.error
    assert outcome.stderr == ""
    (figure,) = outcome.results
    assert figure["data"]["image/png"].startswith("iVBOR")
    return figure["data"]["e2b/chart"]


def only_floats(value: Any) -> bool:
    if isinstance(value, dict):
        return all(only_floats(item) for item in value.values())
    if isinstance(value, list):
        return all(only_floats(item) for item in value)
    return value is None or isinstance(value, (float, str))


@pytest.mark.parametrize("name", CASES)
def test_the_chart_is_as_in_its_golden_file(shared: Client, name: str) -> None:
    chart = chart_of(shared, CASES[name])
    path = GOLDEN / f"{name}.json"
    if os.environ.get("CLOCHE_GOLDEN") == "write":
        path.write_text(json.dumps(chart, indent=1, ensure_ascii=False) + "\n")
    assert chart == json.loads(path.read_text())
    assert only_floats(chart)


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)
