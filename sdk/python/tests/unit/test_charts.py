# SPDX-License-Identifier: Apache-2.0
"""Charts as models: those of the stock SDKs, and the details beyond them as their schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

import cloche
from cloche._core.chart_details import ChartDetail, read_detail

SCHEMA = Path(__file__).resolve().parents[3] / "charts" / "schema" / "chart.json"
DEFINITIONS: Dict[str, Any] = json.loads(SCHEMA.read_text())["$defs"]
DETAILS = [one["$ref"].rpartition("/")[2] for one in DEFINITIONS["Detail"]["anyOf"]]
TYPED = [name for name in DETAILS if name != "Plain"]
DATA = sorted(
    {
        DEFINITIONS[name]["properties"]["elements"]["items"]["$ref"].rpartition("/")[2]
        for name in TYPED
        if "elements" in DEFINITIONS[name]["properties"]
    }
)


@pytest.mark.parametrize("name", [*TYPED, *DATA, "Sampled"])
def test_every_model_has_the_fields_of_its_schema(name: str) -> None:
    assert set(getattr(cloche, name)._names()) == set(DEFINITIONS[name]["properties"])


@pytest.mark.parametrize("name", TYPED)
def test_every_type_of_the_schema_is_read_as_its_model(name: str) -> None:
    kind = DEFINITIONS[name]["properties"]["type"]
    for word in kind.get("enum") or [kind["const"]]:
        data = {"type": word, "elements": [{"label": "a"}], "sampled": [{"element": 0, "of": 9}]}
        detail = read_detail(data)
        assert type(detail) is getattr(cloche, name)
        assert detail is not None and detail.to_dict() == data
        assert detail.sampled is not None and detail.sampled[0].of == 9
        assert type(detail.elements[0]).__name__ in DATA


def test_a_histogram_is_an_unknown_chart_with_a_detail() -> None:
    raw = {
        "type": "unknown",
        "title": "t",
        "elements": [],
        "cloche": {"type": "histogram", "orientation": "vertical", "elements": [{"label": "a", "bins": [[0, 1, 5]]}]},
    }
    chart = cloche.Result(chart=raw).chart
    assert chart is not None and chart.type == cloche.ChartType.UNKNOWN
    assert isinstance(chart.detail, cloche.Histogram)
    assert chart.detail.elements[0].bins == [[0, 1, 5]]
    assert chart.to_dict() == raw


def test_what_is_not_known_is_plain() -> None:
    assert type(read_detail({"type": "new", "x": 1})) is ChartDetail
    assert read_detail({}) is None
    assert read_detail("x") is None
    chart = cloche.Result(chart={"type": "new", "title": "t", "elements": [1]}).chart
    assert chart is not None and chart.type == cloche.ChartType.UNKNOWN and chart.elements == [1]


def test_a_chart_that_lacks_what_it_must_have_is_left_out() -> None:
    assert cloche.Result(chart={"type": "line", "title": "t", "elements": []}).chart is None
