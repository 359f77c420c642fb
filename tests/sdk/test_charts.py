# SPDX-License-Identifier: Apache-2.0
"""Charts of C and TypeScript have every field of sdk/charts/schema/chart.json (Python: sdk/python/tests/unit).

Charts are made from the schema itself, with a value in every field that it knows, so that a field that is added there
and nowhere else fails here.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from table import ROOT

SCHEMA = json.loads((ROOT / "sdk/charts/schema/chart.json").read_text())
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]
ECHO = ROOT / os.environ.get("BUILD", "build") / "sdk/c/tests/chart_echo"
CHARTS = [one["$ref"].rpartition("/")[2] for one in SCHEMA["anyOf"] if "$ref" in one]
DETAILS = [one["$ref"].rpartition("/")[2] for one in DEFINITIONS["Detail"]["anyOf"]]


class Maker:
    """Instances of a schema; every number and text is another one."""

    def __init__(self, nulls: bool) -> None:
        self.count = itertools.count(1)
        self.nulls = nulls

    def make(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self.make(DEFINITIONS[schema["$ref"].rpartition("/")[2]])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][-1]
        if "anyOf" in schema:
            null = {"type": "null"} in schema["anyOf"]
            return None if null and self.nulls else self.make(schema["anyOf"][0])
        return self.of_type(schema)

    def of_type(self, schema: dict[str, Any]) -> Any:
        kinds = schema.get("type", "string")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        number = next(self.count)
        if self.nulls and "null" in kinds:
            return None
        kind = kinds[number % len([one for one in kinds if one != "null"])]
        plain = {"string": f"text {number}", "number": number + 0.5, "integer": number, "boolean": True}
        return plain[kind] if kind in plain else getattr(self, kind)(schema)

    def array(self, schema: dict[str, Any]) -> list[Any]:
        if "prefixItems" in schema:
            return [self.make(one) for one in schema["prefixItems"]]
        items = schema.get("items") or {"type": "string"}
        return [self.make(items), self.make(items)]

    def object(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "properties" not in schema:
            inner = schema.get("additionalProperties") or {}
            return {"one": self.make(inner), "two": self.make(inner)}
        return {name: self.make(one) for name, one in schema["properties"].items()}


def charts(nulls: bool) -> list[dict[str, Any]]:
    """Each kind of chart with a detail, and each detail."""
    maker = Maker(nulls)
    found = [maker.make(DEFINITIONS[name]) for name in CHARTS]
    for name in DETAILS:
        found.append({**maker.make(DEFINITIONS["LineChart"]), "cloche": maker.make(DEFINITIONS[name])})
    # Elements of a chart that nobody knows are as they came, and so not in structs.
    return [{**one, "elements": []} if one["type"] == "unknown" else one for one in found]


@pytest.mark.parametrize("nulls", [False, True], ids=["full", "nulls"])
def test_structs_of_the_c_library_hold_every_field_of_a_chart(nulls: bool) -> None:
    given = charts(nulls)
    # What is in two dimensions stays so.
    plotly = next(one for one in given if one.get("cloche", {}).get("type") == "plotly")
    plotly["cloche"]["elements"][0]["columns"]["z"] = [[1.5, None], [2.5, "x"]]
    for one in given:
        if one["type"] == "superchart":
            one["elements"] = [part for part in one["elements"] if part["type"] != "unknown"]
    done = subprocess.run([ECHO], input=json.dumps(given), capture_output=True, text=True, check=True)
    echoed = json.loads(done.stdout)
    assert len(echoed) == len(given) == len(CHARTS) + len(DETAILS)
    for before, after in zip(given, echoed, strict=True):
        assert after == before


def test_types_of_the_typescript_package_have_every_field_of_a_chart(tmp_path: Path) -> None:
    named = [*DETAILS, *sorted(name for name in DEFINITIONS if name.endswith("Data")), "Sampled", "Channel"]
    charts_ts = [name for name in CHARTS if name != "UnknownChart"]
    lines = [
        f"import type {{ Chart, ChartDetail, {', '.join([*named, *charts_ts])} }} from 'cloche'",
        "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never",
    ]
    for name in [*named, *charts_ts]:
        keys = " | ".join(f"'{key}'" for key in DEFINITIONS[name]["properties"])
        lines.append(f"export const keys{name}: Same<keyof {name}, {keys}> = true")
    for nulls in (False, True):
        maker = Maker(nulls)
        for name in DETAILS:
            value = json.dumps(maker.make(DEFINITIONS[name]))
            lines.append(f"export const {name}{int(nulls)}: {name} = {value}")
            lines.append(f"export const detail{name}{int(nulls)}: ChartDetail | Chart['cloche'] = {name}{int(nulls)}")
    (tmp_path / "charts.ts").write_text("\n".join(lines) + "\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/cloche").symlink_to(ROOT / "sdk/typescript")
    options = {"noEmit": True, "strict": True, "skipLibCheck": True, "module": "nodenext", "target": "es2022",
               "types": [], "lib": ["es2022", "dom", "dom.iterable", "esnext.disposable"]}  # fmt: skip
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["charts.ts"]}))
    tsc = ROOT / "sdk/typescript/node_modules/.bin/tsc"
    done = subprocess.run([tsc, "-p", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = [f"{lines[int(at) - 1]}\n  {said}" for at, said in re.findall(r"charts.ts\((\d+),\d+\): (.*)", done.stdout)]
    assert done.returncode == 0, "\n" + ("\n".join(wrong) or done.stdout)
