# SPDX-License-Identifier: Apache-2.0
"""Answers held against the description of the models, sdk/schema; fields that it does not know are refused."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SDK = Path(__file__).resolve().parents[4] / "sdk"
BASE = "https://cloche.invalid"


@functools.cache
def registry() -> Registry[Any]:
    found = {f"{BASE}/schema/json/{path.name}": path for path in (SDK / "schema/json").glob("*.json")}
    found[f"{BASE}/charts/schema/chart.json"] = SDK / "charts/schema/chart.json"
    return Registry().with_resources(
        (name, Resource.from_contents(json.loads(path.read_text()))) for name, path in found.items()
    )


def check(model: str, *answers: Any) -> None:
    """Every answer is one of that model, and there is one."""
    assert answers, model
    validator = Draft202012Validator(registry().contents(f"{BASE}/schema/json/{model}.json"), registry=registry())
    for answer in answers:
        wrong = [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in validator.iter_errors(answer)]
        assert not wrong, (model, wrong, answer)
