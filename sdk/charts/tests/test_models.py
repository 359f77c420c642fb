# SPDX-License-Identifier: Apache-2.0
"""The schema, the classes and the charts of the kernel's tests agree."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from conftest import SCHEMA, read

from cloche_charts import chart_from_dict, models
from cloche_charts.schema import schema

KERNEL = Path(__file__).parents[3] / "tests" / "kernels" / "python"
sys.path.append(str(KERNEL))
from chart_cases import CASES, HEAD  # noqa: E402

SAME_TICKS = matplotlib.__version__.startswith("3.10.")  # what the files were written with
TICKS = ("x_ticks", "y_ticks", "x_tick_labels", "y_tick_labels")


def without(chart: Any, *keys: str) -> Any:
    if isinstance(chart, dict):
        return {key: without(value, *keys) for key, value in chart.items() if key not in keys}
    return [without(value, *keys) for value in chart] if isinstance(chart, list) else chart


def test_the_schema_in_the_tree_is_that_of_the_classes() -> None:
    assert schema() == SCHEMA, "write it anew: python -m cloche_charts.schema >schema/chart.json"


@pytest.mark.parametrize("name", CASES)
def test_what_stock_clients_see_is_as_in_the_kernels_golden_files(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    code = CASES[name]
    if matplotlib.__version_info__ < (3, 10):
        code = code.replace('orientation="horizontal"', "vert=False")  # of boxplot()
    exec(HEAD + code, {})
    hidden = ("cloche",) if SAME_TICKS else ("cloche", *TICKS)
    golden = json.loads((KERNEL / "golden" / f"{name}.json").read_text())
    assert without(read(plt.gcf()), *hidden) == without(golden, *hidden)


def test_a_type_of_the_future_is_an_unknown_chart() -> None:
    chart = chart_from_dict({"type": "treemap", "title": "T", "elements": [1]})
    assert isinstance(chart, models.UnknownChart)
    assert (chart.title, chart.kind) == ("T", "unknown")


@pytest.mark.parametrize("detail", [{"type": "treemap"}, {"type": "histogram"}, {}, None, "x", {"type": ["a"]}])
def test_a_detail_that_is_not_known_is_left_out(detail: Any) -> None:
    chart = chart_from_dict({"type": "unknown", "title": None, "elements": [], "cloche": detail})
    assert chart == models.UnknownChart("unknown", None, [])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"type": "pie", "title": None}, "chart has no elements"),
        ({"type": "pie", "title": 1, "elements": []}, r"chart\.title is 1"),
        ({"type": "pie", "title": None, "elements": [{"label": "a"}]}, r"chart\.elements\[0\] has no angle"),
        ({"type": "superchart", "title": "", "elements": {}}, r"chart\.elements is {}, which is no list"),
        ([1], "chart is"),
    ],
)
def test_a_chart_of_another_shape_is_refused_by_place(broken: Any, message: str) -> None:
    with pytest.raises(models.ChartError, match=message):
        chart_from_dict(broken)


def test_points_are_pairs() -> None:
    fig, ax = plt.subplots()
    ax.plot([1, 2], [3, 4])
    chart = chart_from_dict(read(fig))
    assert isinstance(chart, models.LineChart)
    assert chart.elements[0].points == [(1.0, 3.0), (2.0, 4.0)]
    assert (chart.x_label, chart.x_scale) == (None, "linear")
