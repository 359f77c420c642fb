# SPDX-License-Identifier: Apache-2.0
"""Charts against golden files: CLOCHE_GOLDEN=write rewrites them (then read the diff).

The files hold what stock clients know. What is beside it (the key `cloche`) is named here and tested in sdk/charts.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chart_cases import CASES, HEAD
from conftest import Client

GOLDEN = Path(__file__).parent / "golden"
DETAILS = {
    "bar_with_errors": "error_bar",
    "histogram": "histogram",
    "line_polar": "polar",
    "other_contour": "contour",
    "other_errorbar": "error_bar",
    "other_fill_between": "area",
    "other_imshow": "heatmap",
    "other_stairs": "histogram",
    "other_three_dimensions": "line_3d",
}


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
    assert chart.pop("cloche", {}).get("type") == DETAILS.get(name)
    path = GOLDEN / f"{name}.json"
    if os.environ.get("CLOCHE_GOLDEN") == "write":
        path.write_text(json.dumps(chart, indent=1, ensure_ascii=False) + "\n")
    assert chart == json.loads(path.read_text())
    assert only_floats(chart)


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)


PLOTLY = """\
import plotly.graph_objects as go
fig = go.Figure(go.Bar(x=["a", "b"], y=[1, 2.5]), {"title": {"text": "T"}})
"""


@pytest.mark.parametrize("shown", ["fig", "fig.show()", "display(fig)"])
def test_a_plotly_figure_has_a_chart_of_its_own_data(shared: Client, shown: str) -> None:
    outcome = shared.run(PLOTLY + shown)
    assert outcome.error is None, outcome.error
    result = outcome.results[-1]  # before it there may be plotly's own script, once a kernel
    chart = result["data"]["e2b/chart"]
    assert (chart["type"], chart["title"], chart["elements"]) == ("unknown", "T", [])
    (bars,) = chart["cloche"]["elements"]
    assert (bars["trace"], bars["columns"]) == ("bar", {"x": ["a", "b"], "y": [1.0, 2.5]})


HOSTILE = {
    "a method that raises": ("line.get_xdata = lambda *a, **k: 1 / 0", "unknown"),
    "a label whose text raises": ("line.get_label = lambda: type('L', (), {'__str__': lambda s: 1 / 0})()", "unknown"),
    "data that raises": ("ax.has_data = lambda: 1 / 0", None),
    "a method that loops": ("def loop(*a, **k):\n    while True: pass\nline.get_label = loop", None),
    "a method that exits": ("def leave(*a): raise SystemExit\nline.get_label = leave", None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_figure_never_breaks_the_cell(shared: Client, name: str) -> None:
    patch, kind = HOSTILE[name]
    cell = "import os\nos.environ['CLOCHE_CHART_SECONDS'] = '0.3'\nfig, ax = plt.subplots(); line, = ax.plot([1, 2])\n"
    outcome = shared.run(f"{HEAD}{cell}{patch}\nplt.show()\ndel os.environ['CLOCHE_CHART_SECONDS']")
    assert outcome.error is None, outcome.error
    assert outcome.stderr == ""
    (figure,) = outcome.results
    assert figure["data"]["image/png"].startswith("iVBOR")
    assert figure["data"]["e2b/chart"].get("type") == kind
