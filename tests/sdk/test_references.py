# SPDX-License-Identifier: Apache-2.0
"""The API references that `make sdk-docs` makes have everything that is public, with its words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from table import ROOT

# Packages are built where they are not.
pytestmark = pytest.mark.timeout(620)
PROSE = {"c": 1000, "python": 1000, "charts": 100, "typescript": 1000}


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("references")
    # With the clients' own Python: the packages' signatures name what they are made of.
    subprocess.run([sys.executable, ROOT / "scripts/sdk-docs", out], check=True, capture_output=True, timeout=600)
    return {path.stem: path.read_text() for path in out.glob("*.md")}


def exported(package: str, source: Path) -> list[str]:
    code = f"""
import inspect, json, sys
sys.path.insert(0, {str(source)!r})
import {package} as p
print(json.dumps([n for n in p.__all__ if inspect.isclass(getattr(p, n)) or inspect.isfunction(getattr(p, n))]))
"""
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_there_is_one_of_each_with_text(references: dict[str, str]) -> None:
    assert {name: len(text.split()) > PROSE[name] for name, text in references.items()} == dict.fromkeys(PROSE, True)


def test_every_function_of_the_c_library_has_its_words(references: dict[str, str]) -> None:
    names = subprocess.run([ROOT / "sdk/c/man/make", "--functions"], capture_output=True, text=True, check=True).stdout
    assert len(names.split()) > 100
    for name in names.split():
        said = re.search(rf"^### `{name}`\n\n(.+)\n\n```c\n", references["c"], re.M)
        assert said, name
        assert said[1].rstrip().endswith(".") and said[1][0].isupper(), f"{name}: {said[1]}"


@pytest.mark.parametrize(
    ("package", "page", "source"),
    [("cloche", "python", ROOT / "sdk/python/src"), ("cloche_charts", "charts", ROOT / "sdk/charts/src")],
)
def test_every_class_and_function_of_a_python_package_is_there(
    references: dict[str, str], package: str, page: str, source: Path
) -> None:
    headings = set(re.findall(r"^## `(\w+)", references[page], re.M))
    names = exported(package, source)
    assert len(names) > 4
    assert [name for name in names if name not in headings] == []


def test_every_model_of_a_chart_is_there(references: dict[str, str]) -> None:
    schema = json.loads((ROOT / "sdk/charts/schema/chart.json").read_text())["$defs"]
    headings = set(re.findall(r"^## `(\w+)", references["charts"], re.M))
    assert [name for name, one in schema.items() if "properties" in one and name not in headings] == []


def test_the_reference_of_the_typescript_package_is_up_to_date() -> None:
    done = subprocess.run(
        ["node", "reference.mjs", "--check"], cwd=ROOT / "sdk/typescript", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
